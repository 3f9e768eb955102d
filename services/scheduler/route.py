"""Where a job's units go."""

from __future__ import annotations

from services.bus import STORED_ENDPOINT
from services.scheduler.reuse import is_rescore
from touchstone.v1 import job_pb2


def route(spec: job_pb2.JobSpec) -> str:
    """The endpoint token under which units are released: a re-score runs wherever an evaluator is."""
    return STORED_ENDPOINT if is_rescore(spec) else spec.endpoint
