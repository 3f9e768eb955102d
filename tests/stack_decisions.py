"""Decisions at a whole installation."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from tests.stack import Stack, until
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2, scheduler_service_pb2


def started(
    stack: Stack, baseline: job_pb2.JobSpec, candidate: job_pb2.JobSpec, *further: job_pb2.JobSpec, **options: Any
) -> scheduler_service_pb2.StartDecisionResponse:
    """Asks for it twice, as a client that was not answered."""
    request = scheduler_service_pb2.StartDecisionRequest(
        request_id=str(uuid.uuid4()), baseline=baseline, candidate=candidate, further_candidates=further, **options
    )
    made = stack.scheduler.StartDecision(request, timeout=30)
    assert stack.scheduler.StartDecision(request, timeout=30).decision_id == made.decision_id
    return made


def ended(
    stack: Stack, made: scheduler_service_pb2.StartDecisionResponse, timeout_s: float = 120
) -> decision_pb2.Decision:
    for job in (made.baseline, made.candidate, *made.further_candidates):
        stack.heard(stack.wait(job.job_id, timeout_s))
        until(partial(stack.settled, job.job_id))
    request = results_service_pb2.GetDecisionRequest(decision_id=made.decision_id)
    return stack.results.GetDecision(request, timeout=30).decision
