"""Decisions as REST and pages both read them: by their id, as they are now, and what they found in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from services import rpc
from services.errors import NotFoundError
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.words import refusals
from services.words.decisions import job_ids, said_of
from services.words.decisions import names as called
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
    """By the id of any of its jobs. One of which the results service has not heard yet has its jobs alone. Raises
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
        job = await _live_job(backend, decision_id, caller)
        if not job.spec.HasField("deciding"):
            raise gone
        jobs_ = [job if one == job.job_id else await _live_job(backend, one, caller) for one in job_ids(job)]
    except NotFoundError:
        raise gone from None
    made = decision_pb2.Decision(decision_id=jobs_[0].job_id, baseline=jobs_[0])
    if job.spec.deciding.race_job_ids:
        made.racers.extend(decision_pb2.Racer(job=one, state=decision_pb2.Racer.STATE_RACING) for one in jobs_)
    else:
        made.candidate.CopyFrom(jobs_[1])
    return made


async def _live_job(backend: Backend, job_id: str, caller: rpc.Identity) -> job_pb2.Job:
    request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
    return (await backend.ask(backend.scheduler.GetJob, request, caller)).job


def jobs_of(decision: decision_pb2.Decision) -> list[job_pb2.Job]:
    """The baseline's first."""
    return [racer.job for racer in decision.racers] or [decision.baseline, decision.candidate]


def is_live(decision: decision_pb2.Decision) -> bool:
    """Whether a job of it still waits or runs."""
    return not all(map(is_finished, jobs_of(decision)))


def asked_pairs(decision: decision_pb2.Decision) -> int:
    """Items after which there was a verdict; without one, those that all have answered."""
    return decision.decided_at or decision.pairs


def names(decision: decision_pb2.Decision) -> list[str]:
    """What its models are called, the baseline first."""
    return short_names([job.spec for job in jobs_of(decision)])


def short_names(specs: Sequence[job_pb2.JobSpec]) -> list[str]:
    """What models are called together: by their ids alone, where those differ."""
    models = [spec.model for spec in specs]
    return models if len({*models}) == len(models) else called(specs)


def again(decision: decision_pb2.Decision) -> scheduler_service_pb2.StartDecisionRequest:
    """What starts another decision like it, at the usual priority and without taking answers of others."""
    baseline, candidate, *further = (jobs.spec_again(job) for job in jobs_of(decision))
    side = decision.baseline.spec.deciding
    return scheduler_service_pb2.StartDecisionRequest(
        baseline=baseline, candidate=candidate, further_candidates=further, error=side.error, margin=side.margin
    )


def words(decision: decision_pb2.Decision) -> str:
    """What was found, as a sentence."""
    return f"{said_of(decision, names(decision))}."


def ended(decision: decision_pb2.Decision) -> job_pb2.Job | None:
    """Of a decision between two that ended without a verdict, the job that failed or was stopped first; None for
    others."""
    over = [job for job in (decision.baseline, decision.candidate) if job.state in _OVER]
    if decision.verdict or decision.racers or is_live(decision) or not over:
        return None
    return min(over, key=lambda job: (job.state != job_pb2.Job.STATE_FAILED, job.finished_at.ToNanoseconds()))
