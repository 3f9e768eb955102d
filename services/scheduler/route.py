"""Where a job's units go."""

from __future__ import annotations

from services.bus import STORED_ENDPOINT
from services.scheduler.reuse import calls_nobody
from touchstone.v1 import job_pb2


def route(spec: job_pb2.JobSpec) -> str:
    """The endpoint token under which units are released: what calls nobody runs wherever an evaluator is."""
    return STORED_ENDPOINT if calls_nobody(spec) else spec.endpoint
