"""Where a job's units go."""

from __future__ import annotations

from services.bus import STORED_ENDPOINT, batches_endpoint
from services.scheduler.reuse import calls_nobody
from touchstone.v1 import job_pb2


def route(spec: job_pb2.JobSpec) -> str:
    """The endpoint token under which units are released: what calls nobody runs wherever an evaluator is, and what goes
    through a batch API waits beside the endpoint's calls."""
    if calls_nobody(spec):
        return STORED_ENDPOINT
    return batches_endpoint(spec.endpoint) if spec.provider_batch else spec.endpoint
