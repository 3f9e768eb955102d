"""What a job has measured: counted in SQL, computed by `aggregation`, put together here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.errors import InvalidRequestError
from services.results.scores import aggregation, metric_kinds, suite_score, task_counts, tip_diversity
from services.results.scores.aggregation import Measured
from services.results.scores.ranking import NO_REFERENCE, add_offer, caution, not_ranked_reason, redrawn_reason, unread
from services.results.scores.suite_score import metric_message
from services.results.scores.task_counts import Counts
from services.results.statistics.metric_values import Estimate
from services.results.storage import archived_items
from services.results.storage.database import Connection, first_row, query
from services.words import replays, suites
from services.words.jobs import is_finished, is_recorded
from touchstone.v1 import job_pb2, metric_pb2

COST_DIGITS = 12
"""Decimals of US dollars: beyond them, sums of the same prices differ by the order of addition."""
SERVED_MODELS = 8
"""Versions listed at most."""

RULES = 4
"""The version of the rules for results. It rises when figures, ranking or their wording change; seals by older rules
are computed again, so that all runs on a board follow the same rules."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A job's result with further data for sealing. `averages` are metrics over tasks, as (metric, number of tasks).

    `missing` and `errors` count answers.
    """

    result: metric_pb2.JobResult
    averages: Sequence[tuple[metric_pb2.Metric, int]]
    missing: int
    errors: int


def compute(connection: Connection, job: job_pb2.Job, *, seal: bool) -> Computed:
    """Everything measured so far. `seal`: the final result, with full resampling; a running job's intervals take fewer.

    Raises InvalidRequestError when the plan asks for a metric that cannot be computed.
    """
    archived_items.require(connection, job.job_id)
    job = suites.complete(job)
    for plan in job.plan:
        try:
            metric_kinds.check(plan.metrics)
        except ValueError as error:
            raise InvalidRequestError(f"Task {plan.task}: {error}.", "job.plan") from error
    ended = seal or is_finished(job)
    counts = task_counts.read_counts(connection, job)
    missing = sum(max(0, task_counts.planned_answers(plan) - counts[plan.task].stored) for plan in job.plan)
    errors = sum(counts[plan.task].errors for plan in job.plan)
    data = task_counts.read_data(connection, job, counts, ended)
    resamples = aggregation.RESAMPLES if seal else aggregation.LIVE_RESAMPLES
    measured = {plan.task: aggregation.measure(data[plan.task], plan.metrics, resamples) for plan in job.plan}
    majority = task_counts.read_majority_shares(connection, job)
    result = metric_pb2.JobResult(
        job_id=job.job_id,
        tasks=[task_result(p, measured[p.task], counts[p.task], majority.get(p.task)) for p in job.plan],
        sealed=seal,
        score_rule=suite_score.score_rule(job.plan),
        weighting=suites.of_plans(job.plan),
        fields=task_counts.read_fields(connection, job),
        tip_diversity=tip_diversity.read(connection, job) if seal else (),
    )
    _add_unread(job, counts, result)
    if ended:
        add_offer(job, result)
    _add_usage(connection, job, [counts[plan.task] for plan in job.plan], result)
    result.not_ranked_reason = "the job is not finished"
    if ended:
        result.not_ranked_reason = _not_ranked_reason(connection, job, counts, missing + errors)
    averages: list[tuple[metric_pb2.Metric, int]] = []
    # A job that stopped half-way keeps its tasks' metrics, but has no score for the suite.
    if seal or not ended or not missing + errors:
        averages = suite_score.averages_by_metric(job.plan, measured)
        result.averages.extend(suite_score.further_averages(job.plan, measured))
    for metric, _ in averages:
        if metric.metric == suite_score.SCORE:
            result.suite_score.CopyFrom(metric)
    if seal and result.not_ranked_reason == NO_REFERENCE:
        # Represents the run on its board and in its history.
        averages = [(metric_pb2.Metric(metric=suite_score.SCORE, undefined_reason=NO_REFERENCE), len(job.plan))]
    so_far = suite_score.pooled_accuracy(job.plan, data)
    if so_far is not None:
        result.accuracy_so_far.CopyFrom(so_far)
    return Computed(result, averages, missing, errors)


def _add_unread(job: job_pb2.Job, counts: Mapping[str, Counts], result: metric_pb2.JobResult) -> None:
    """Tasks with too many unread answers, and the caution for them."""
    for plan in job.plan:
        count = counts[plan.task]
        found = unread(plan, count.scored_message(), count.marked_would_read, count.lenient_would_read)
        if found is not None:
            result.unread.append(found)
    result.caution = caution(result.unread, len(job.plan))


def _not_ranked_reason(connection: Connection, job: job_pb2.Job, counts: Mapping[str, Counts], unanswered: int) -> str:
    """Why a finished job does not rank; "" for one that ranks. `unanswered`: answers that are missing or errors."""
    if job.spec.HasField("watching"):
        return "it is a run of a watch, whose items were chosen to tell models apart"
    reason = not_ranked_reason(
        job.state,
        unanswered,
        sum(counts[plan.task].scored.total() for plan in job.plan),
        several_answers=any(task_counts.repeats_of(plan) > 1 for plan in job.plan),
    )
    if job.spec.replays_job_id and not reason:
        return replays.NEVER_RANKS
    if job.spec.reuse.rerun and not reason:
        return redrawn_reason(job, _source(connection, job.spec.reuse.job_id))
    return reason


def _source(connection: Connection, job_id: str) -> job_pb2.Job | None:
    found = first_row(connection, "SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job_id})
    return job_pb2.Job.FromString(found[0]) if found else None


def task_result(
    plan: job_pb2.TaskPlan, measured: Measured, counts: Counts, majority_share: float | None
) -> metric_pb2.TaskResult:
    return metric_pb2.TaskResult(
        task=plan.task,
        title=plan.title,
        metrics=[
            metric_message(name, _explained(estimate, counts), beside=name in measured.beside)
            for name, estimate in measured.estimates.items()
        ],
        items=counts.stored,
        items_planned=task_counts.planned_answers(plan),
        outcomes=counts.message(),
        correct=counts.correct,
        majority_share=majority_share,
        score_group=plan.score_group,
        category=plan.category,
        beside=plan.beside,
        first_answer_gap=counts.first_gain / (counts.stored - counts.errors) if counts.first_gain else 0.0,
    )


def _explained(estimate: Estimate, counts: Counts) -> Estimate:
    """Why a metric has no value although there are answers."""
    return replace(estimate, undefined_reason=NO_REFERENCE) if counts.unscored and not estimate.n else estimate


def _add_usage(
    connection: Connection, job: job_pb2.Job, counts: Sequence[Counts], result: metric_pb2.JobResult
) -> None:
    total = Counts()
    for task in counts:
        total.add(task)
    result.outcomes.CopyFrom(total.message())
    result.input_tokens = total.input_tokens
    result.output_tokens = total.output_tokens
    result.input_untold, result.output_untold = total.input_untold, total.output_untold
    result.reasoning_tokens = total.reasoning_tokens
    result.items_reused = total.reused
    if total.stored > total.errors:
        # The cost of imported answers to the people who collected them is unknown.
        if not total.unpriced and (is_recorded(job.spec) or not job.spec.reuse.import_id):
            result.cost_usd = round(total.cost_usd, COST_DIGITS)
        ((median, p95, ttft_median, ttft_p95),) = connection.execute(
            query("scores/latency"), {"job_id": job.job_id}
        ).fetchall()
        result.latency_p50_ms, result.latency_p95_ms = median or 0.0, p95 or 0.0
        result.ttft_p50_ms, result.ttft_p95_ms = ttft_median or 0.0, ttft_p95 or 0.0
    # A baseline's "version" says what it was fitted on, task by task: several do not mean a change.
    if not job.baseline:
        found = connection.execute(
            query("scores/served_models"), {"job_id": job.job_id, "most": SERVED_MODELS}
        ).fetchall()
        result.served_models.extend(name for (name,) in found)
