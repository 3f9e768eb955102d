"""Touchstone from Python and from the command line. Needs grpcio and the generated `touchstone.v1` alone.

from touchstone_client import Client, suite_spec

with Client() as touchstone:
    job = touchstone.run(suite_spec("glue", endpoint="ollama", model="mistral:latest"))
    for state in touchstone.watch(job.job_id):
        print(state.progress.items_done)
"""

from touchstone_client.client import Client
from touchstone_client.errors import ClientError, RefusedError, UnreachableError
from touchstone_client.settings import Settings
from touchstone_client.specs import RERUN, suite_spec

__all__ = ["RERUN", "Client", "ClientError", "RefusedError", "Settings", "UnreachableError", "suite_spec"]
