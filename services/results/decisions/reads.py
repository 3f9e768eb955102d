"""Decisions as they are read: their verdict follows from the stored answers alone, whenever it is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

from services.errors import NotFoundError
from services.results import paging
from services.results.decisions import answers
from services.results.runs import job_reads
from services.results.sequential.evidence import evidence
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from services.words.enums import DECISION_VERDICTS
from services.words.jobs import FINISHED, items_of
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2

_NOTHING = -1000.0
"""The logarithm of no evidence at all: infinity has no form in JSON."""
_OTHER_PLAN = (
    "The jobs have other items, so their answers cannot be compared. Give all evaluators the same data, and name "
    "datasets whose rows have the same ids, references and scoring in the same order."
)
_NO_SCORES = "The items of these tasks have no scores of their own, so no verdict is possible."


def read_evidence(connection: Connection, baseline: job_pb2.Job, candidate: job_pb2.Job) -> decision_pb2.Decision:
    """What the answers say, without the jobs."""
    side = baseline.spec.deciding
    decision = decision_pb2.Decision(decision_id=baseline.job_id, items_total=items_of(baseline))
    if not baseline.plan or not candidate.plan:
        return decision
    if not _same_items(baseline.plan, candidate.plan):
        decision.note = _OTHER_PLAN
        return decision
    if all(answers.statistic_of(task) is None for task in baseline.plan):
        decision.note = _NO_SCORES
        return decision
    there = answers.read(connection, baseline, candidate)
    found = evidence(
        there.pairs,
        error=side.error,
        margin=side.margin,
        total=there.total,
        strata=there.strata,
        ended=there.ended,
    )
    decision.pairs, decision.failed = found.seen, there.failed
    decision.verdict = DECISION_VERDICTS.get(found.verdict, job_pb2.DECISION_VERDICT_UNSPECIFIED)
    decision.decided_at = found.decided_at or 0
    if found.difference is not None:
        decision.difference = found.difference
    decision.low, decision.high = found.interval
    decision.threshold, decision.unlikely = found.threshold, found.unlikely
    for look in found.path:
        decision.path.add(
            pairs=look.items,
            better=look.better,
            worse=look.worse,
            equivalent=max(look.equivalent, _NOTHING),
            chance=look.chance,
        )
    return decision


def _same_items(one: Sequence[job_pb2.TaskPlan], other: Sequence[job_pb2.TaskPlan]) -> bool:
    """Whether two plans ask for the same, perhaps with other prompts."""
    return len(one) == len(other) and all(
        (a.task, a.items) == (b.task, b.items)
        and (a.item_set == b.item_set or (a.question_set and a.question_set == b.question_set))
        for a, b in zip(one, other, strict=True)
    )


def get_decision(
    connection: Connection, decision_id: str, visible: Visibility = EVERYTHING
) -> results_service_pb2.GetDecisionResponse:
    """Raises NotFoundError for a job that belongs to no decision, and as `job_reads.get_job` for either job."""
    job = job_reads.get_job(connection, decision_id, visible)
    if not job.spec.HasField("deciding"):
        raise NotFoundError(refusals.not_found("Decision", decision_id))
    return results_service_pb2.GetDecisionResponse(decision=_decision(connection, job, visible, whole=True))


def _decision(connection: Connection, job: job_pb2.Job, visible: Visibility, *, whole: bool) -> decision_pb2.Decision:
    """Not `whole`: without its path, and of one that stopped its jobs only what was known then."""
    other = job_reads.get_job(connection, job.spec.deciding.against_job_id, visible)
    baseline, candidate = (other, job) if job.spec.deciding.candidate else (job, other)
    decided = baseline.decided if baseline.HasField("decided") else candidate.decided
    if whole or not decided.verdict:
        decision = read_evidence(connection, baseline, candidate)
    else:
        total = items_of(baseline)
        decision = decision_pb2.Decision(decision_id=baseline.job_id, items_total=total, pairs=decided.pairs)
    if decided.verdict:
        # What stopped the jobs holds, whatever became of single answers since.
        decision.verdict, decision.decided_at = decided.verdict, decided.pairs
        decision.difference, decision.low, decision.high = decided.difference, decided.low, decided.high
    if not whole:
        del decision.path[:]
    decision.baseline.CopyFrom(baseline)
    decision.candidate.CopyFrom(candidate)
    if baseline.state in FINISHED and candidate.state in FINISHED:
        decision.saved.CopyFrom(_saved(connection, baseline, candidate))
    return decision


def list_decisions(
    connection: Connection, request: results_service_pb2.ListDecisionsRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ListDecisionsResponse:
    """Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, default=20, most=50)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    rows = connection.execute(
        query("decisions/list"),
        {
            "after_at": paging.time_of(after[0]) if after else None,
            "after_job": after[1] if after else None,
            "size": size + 1,
            **visible.parameters,
        },
    ).fetchall()
    page, token = paging.fill_page(
        _listed(connection, [job_pb2.Job.FromString(blob) for (blob,) in rows], visible),
        size,
        filter_,
        lambda one: [one.baseline.created_at.ToMicroseconds(), one.decision_id],
    )
    return results_service_pb2.ListDecisionsResponse(decisions=page, next_page_token=token)


def _listed(
    connection: Connection, jobs: Sequence[job_pb2.Job], visible: Visibility
) -> Iterator[decision_pb2.Decision]:
    for job in jobs:
        # Without the candidate's job there is no decision.
        with suppress(NotFoundError):
            yield _decision(connection, job, visible, whole=False)


def _saved(connection: Connection, baseline: job_pb2.Job, candidate: job_pb2.Job) -> decision_pb2.DecisionSavings:
    saved = decision_pb2.DecisionSavings()
    tokens, costs = 0.0, 0.0
    archived_items.require(connection, baseline.job_id, candidate.job_id)
    for job in (baseline, candidate):
        ((answered, counted, used, priced, cost),) = connection.execute(
            query("decisions/used"), {"job_id": job.job_id}
        ).fetchall()
        unasked = max(0, items_of(job) - answered)
        saved.items += unasked
        tokens += unasked * used / counted if counted else math.nan
        costs += unasked * cost / priced if priced else math.nan
        if answered:
            saved.seconds = max(saved.seconds, unasked * job.progress.elapsed_s / answered)
    if not math.isnan(tokens):
        saved.tokens = round(tokens)
    if not math.isnan(costs):
        saved.cost_usd = costs
    return saved
