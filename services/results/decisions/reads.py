"""Decisions as they are read: their verdict follows from the stored answers alone, whenever it is asked for."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

from services.errors import NotFoundError, UnavailableError
from services.results import paging
from services.results.decisions.evidence import read_evidence
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from services.words.decisions import decision_id, job_ids
from services.words.jobs import FINISHED, items_of
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2

_UNDECIDED, _WORSE = job_pb2.DECISION_VERDICT_UNSPECIFIED, job_pb2.DECISION_VERDICT_WORSE
_Racer = decision_pb2.Racer


def get_decision(
    connection: Connection, job_id: str, visible: Visibility = EVERYTHING
) -> results_service_pb2.GetDecisionResponse:
    """Raises NotFoundError for a job that belongs to no decision, and as `job_reads.get_job` for either job of one
    between two, and for the baseline's of a race."""
    job = job_reads.get_job(connection, job_id, visible)
    if not job.spec.HasField("deciding"):
        raise NotFoundError(refusals.not_found("Decision", job_id))
    return results_service_pb2.GetDecisionResponse(decision=_decision(connection, job, visible, whole=True))


def _decision(connection: Connection, job: job_pb2.Job, visible: Visibility, *, whole: bool) -> decision_pb2.Decision:
    """Not `whole`: without its path, and of one that stopped its jobs only what was known then."""
    if job.spec.deciding.race_job_ids:
        return _race(connection, job, visible, whole=whole)
    baseline, candidate = (job_reads.get_job(connection, one, visible) for one in job_ids(job))
    decided = baseline.decided if baseline.HasField("decided") else candidate.decided
    if whole or not decided.verdict:
        decision = read_evidence(connection, (baseline, candidate))
    else:
        total = items_of(baseline)
        decision = decision_pb2.Decision(decision_id=baseline.job_id, items_total=total, pairs=decided.pairs)
    if decided.verdict:
        # What stopped the jobs holds, whatever became of single answers since.
        decision.verdict, decision.decided_at = decided.verdict, decided.pairs
        decision.difference, decision.low, decision.high = decided.difference, decided.low, decided.high
        decision.pairs, decision.failed = decided.pairs, decided.failed
    if not whole:
        del decision.path[:]
    decision.baseline.CopyFrom(baseline)
    decision.candidate.CopyFrom(candidate)
    if baseline.state in FINISHED and candidate.state in FINISHED:
        decision.saved.CopyFrom(_saved(connection, (baseline, candidate)))
    return decision


def _race(connection: Connection, job: job_pb2.Job, visible: Visibility, *, whole: bool) -> decision_pb2.Decision:
    """Without the jobs that were deleted."""
    baseline, *candidates = job_ids(job)
    # Without the baseline's job, a race has no id.
    jobs = [job_reads.get_job(connection, baseline, visible)]
    for job_id in candidates:
        with suppress(NotFoundError):
            jobs.append(job_reads.get_job(connection, job_id, visible))
    ends = [one.decided for one in jobs if one.decided.verdict not in (_UNDECIDED, _WORSE)]
    if whole or not ends or not all(one.HasField("decided") for one in jobs):
        decision = read_evidence(connection, jobs, whole=whole, deleted=len(candidates) + 1 - len(jobs))
    else:
        total = max(items_of(one) for one in jobs)
        decision = decision_pb2.Decision(decision_id=decision_id(job), items_total=total, pairs=ends[0].pairs)
        decision.racers.extend(_Racer(state=_Racer.STATE_WITHDRAWN) for _ in jobs)
    if ends:
        decision.verdict = ends[0].verdict
        decision.decided_at = decision.pairs = ends[0].pairs
    elif all(one.decided.verdict == _WORSE for one in jobs):
        # The job that beat them all was deleted.
        decision.verdict, decision.decided_at = job_pb2.DECISION_VERDICT_BEST, max(one.decided.pairs for one in jobs)
    if decision.verdict:
        # Why the jobs that are left would not show one.
        decision.note = ""
    for racer, one in zip(decision.racers, jobs, strict=True):
        if one.HasField("decided"):
            _keep_decided(racer, one.decided, {"", *(known.job_id for known in jobs)})
        if not whole:
            del racer.path[:]
        racer.job.CopyFrom(one)
    decision.baseline.CopyFrom(jobs[0])
    if all(one.state in FINISHED for one in jobs):
        decision.saved.CopyFrom(_saved(connection, jobs))
    return decision


def _keep_decided(racer: decision_pb2.Racer, decided: job_pb2.Decided, there: Container[str]) -> None:
    """What stopped the job holds. `there` are the jobs that were not deleted."""
    states = {_WORSE: _Racer.STATE_BEATEN, job_pb2.DECISION_VERDICT_BEST: _Racer.STATE_BEST}
    racer.state = states.get(decided.verdict, _Racer.STATE_LEFT)
    racer.beaten_at = decided.pairs if decided.verdict == _WORSE else 0
    if decided.against_job_id not in there:
        # Compared with another one, it would show other figures.
        del racer.path[:]
    racer.against_job_id, racer.pairs, racer.failed = decided.against_job_id, decided.counted, decided.failed
    for name in ("difference", "low", "high"):
        # The best one is compared with nobody.
        if decided.against_job_id:
            setattr(racer, name, getattr(decided, name))
        else:
            racer.ClearField(name)


def ended_with(connection: Connection, job_id: str) -> decision_pb2.Decision | None:
    """The decision whose jobs have all ended, this one last; None for others. So one of its jobs says so, whenever they
    are asked. Raises NotFoundError, and UnavailableError while the job's end is not stored."""
    job = job_reads.get_job(connection, job_id)
    if not job.spec.HasField("deciding"):
        return None
    if job.attempt == 1 and job.state not in FINISHED:
        raise UnavailableError(f"The end of job {job_id} is not stored yet. Ask again.")
    ((last,),) = connection.execute(query("decisions/last_ended"), {"jobs": job_ids(job)}).fetchall()
    return _decision(connection, job, EVERYTHING, whole=False) if last == job_id else None


def list_decisions(
    connection: Connection, request: results_service_pb2.ListDecisionsRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ListDecisionsResponse:
    """Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, default=20, most=50)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    page, token = paging.fill_page(
        _listed(connection, request.schedule_id, after, size + 1, visible),
        size,
        filter_,
        lambda one: _key(one.baseline),
    )
    return results_service_pb2.ListDecisionsResponse(decisions=page, next_page_token=token)


def _listed(
    connection: Connection, schedule_id: str, after: paging.Key | None, at_once: int, visible: Visibility
) -> Iterator[decision_pb2.Decision]:
    """Those after a page's key, read as they are needed."""
    while True:
        where = {
            "after_at": paging.time_of(after[0]) if after else None,
            "after_job": after[1] if after else None,
            "schedule_id": schedule_id,
            "size": at_once,
            **visible.parameters,
        }
        rows = connection.execute(query("decisions/list"), where).fetchall()
        for (blob,) in rows:
            job = job_pb2.Job.FromString(blob)
            after = _key(job)
            # Without the candidate's job there is no decision.
            with suppress(NotFoundError):
                yield _decision(connection, job, visible, whole=False)
        if len(rows) < at_once:
            return


def _key(baseline: job_pb2.Job) -> paging.Key:
    return [baseline.created_at.ToMicroseconds(), baseline.job_id]


def _saved(connection: Connection, jobs: Sequence[job_pb2.Job]) -> decision_pb2.DecisionSavings:
    saved = decision_pb2.DecisionSavings()
    tokens, costs = 0.0, 0.0
    archived_items.require(connection, *(job.job_id for job in jobs))
    for job in jobs:
        ((asked, answered, counted, used, priced, cost),) = connection.execute(
            query("decisions/used"), {"job_id": job.job_id}
        ).fetchall()
        unasked = max(0, items_of(job) - asked)
        if not unasked:
            continue
        saved.items += unasked
        tokens += unasked * used / counted if counted else math.nan
        costs += unasked * cost / priced if priced else math.nan
        if answered:
            saved.seconds = max(saved.seconds, unasked * _seconds_per_item(job, answered))
    if not math.isnan(tokens):
        saved.tokens = round(tokens)
    if not math.isnan(costs):
        saved.cost_usd = costs
    return saved


def _seconds_per_item(job: job_pb2.Job, answered: int) -> float:
    """Since the job's first answer: to load a model takes as long for few items as for all."""
    rates = job.progress.rate_history
    if any(rates):
        return len(rates) / math.fsum(rates)
    # A second has at least one rate.
    return min(job.progress.elapsed_s, 1.0) / answered
