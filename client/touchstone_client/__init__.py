"""Touchstone from Python and from the command line.

Needs grpcio, the generated `touchstone.v1` and `services.words`; the command also needs rich.

from touchstone_client import Client, suite_spec

with Client() as touchstone:
    job = touchstone.run(suite_spec("glue", endpoint="ollama", model="mistral:latest"))
    for state in touchstone.watch(job.job_id):
        print(state.progress.items_done)

`AsyncClient` has the same methods as coroutines.
"""

import os

# Before grpc is imported: it would print each failed handshake, five times a second, where one sentence is enough.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from touchstone.v1.scoring_pb2 import Scoring
from touchstone_client.client import AsyncClient, Client
from touchstone_client.errors import (
    ClientError,
    InvalidError,
    LimitError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
    ServiceError,
    StateError,
    UnreachableError,
    UnsupportedError,
)
from touchstone_client.settings import Settings
from touchstone_client.specs import RERUN, dataset_spec, judge_spec, sampling_parameters, suite_spec

__all__ = [
    "RERUN",
    "AsyncClient",
    "Client",
    "ClientError",
    "InvalidError",
    "LimitError",
    "NotAllowedError",
    "NotFoundError",
    "RefusedError",
    "Scoring",
    "ServiceError",
    "Settings",
    "StateError",
    "UnreachableError",
    "UnsupportedError",
    "dataset_spec",
    "judge_spec",
    "sampling_parameters",
    "suite_spec",
]
