"""Decisions as REST and pages both read them: by their id, as they are now, and what they found in plain words."""

from __future__ import annotations

from services import rpc
from services.errors import NotFoundError
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.words import refusals
from services.words.decisions import names as called
from services.words.decisions import said
from services.words.jobs import is_finished
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

_OVER = (job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


def checked_id(decision_id: str) -> str:
    """The id in its stored form. Raises NotFoundError for an impossible id."""
    try:
        return jobs.checked_id(decision_id)
    except NotFoundError:
        raise not_found(decision_id) from None


def not_found(decision_id: str) -> NotFoundError:
    return NotFoundError(refusals.not_found("Decision", decision_id[:80]))


async def find(backend: Backend, decision_id: str, caller: rpc.Identity) -> decision_pb2.Decision:
    """By the id of either job. One of which the results service has not heard yet has its jobs alone. Raises
    NotFoundError."""
    decision_id = checked_id(decision_id)
    request = results_service_pb2.GetDecisionRequest(decision_id=decision_id)
    try:
        return (await backend.ask(backend.results.GetDecision, request, caller)).decision
    except NotFoundError as gone:
        return await _begun(backend, decision_id, caller, gone)


async def _begun(
    backend: Backend, decision_id: str, caller: rpc.Identity, gone: NotFoundError
) -> decision_pb2.Decision:
    try:
        asked = scheduler_service_pb2.GetJobRequest(job_id=decision_id)
        job = (await backend.ask(backend.scheduler.GetJob, asked, caller)).job
        if not job.spec.HasField("deciding"):
            raise gone
        asked = scheduler_service_pb2.GetJobRequest(job_id=job.spec.deciding.against_job_id)
        other = (await backend.ask(backend.scheduler.GetJob, asked, caller)).job
    except NotFoundError:
        raise gone from None
    baseline, candidate = (other, job) if job.spec.deciding.candidate else (job, other)
    return decision_pb2.Decision(decision_id=baseline.job_id, baseline=baseline, candidate=candidate)


def is_live(decision: decision_pb2.Decision) -> bool:
    """Whether a job of it still waits or runs."""
    return not (is_finished(decision.baseline) and is_finished(decision.candidate))


def asked_pairs(decision: decision_pb2.Decision) -> int:
    """Items after which there was a verdict; without one, those that both have answered."""
    return decision.decided_at or decision.pairs


def names(decision: decision_pb2.Decision) -> tuple[str, str]:
    """What the baseline and the candidate are called: by their models alone, where those differ."""
    specs = decision.baseline.spec, decision.candidate.spec
    baseline, candidate = called(specs) if specs[0].model == specs[1].model else (spec.model for spec in specs)
    return baseline, candidate


def words(decision: decision_pb2.Decision) -> str:
    """What was found, as a sentence."""
    baseline, candidate = names(decision)
    return f"{said(decision.verdict, candidate, baseline, decision.baseline.spec.deciding.margin)}."


def ended(decision: decision_pb2.Decision) -> job_pb2.Job | None:
    """Of a decision that ended without a verdict, the job that failed or was stopped first; None for others."""
    over = [job for job in (decision.baseline, decision.candidate) if job.state in _OVER]
    if decision.verdict or is_live(decision) or not over:
        return None
    return min(over, key=lambda job: (job.state != job_pb2.Job.STATE_FAILED, job.finished_at.ToNanoseconds()))
