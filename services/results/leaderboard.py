"""The leaderboard of a suite: one row per configuration, for its newest complete run, within one item set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from services.errors import InvalidRequestError
from services.results import ranking
from services.results.database import Connection, first_row, query
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2

SCORE = "score"


class UnknownSuiteError(Exception):
    """No run names the suite; it may still be one that an evaluator announces."""


def leaderboard(
    connection: Connection,
    request: results_service_pb2.GetLeaderboardRequest,
    announced: Iterable[suite_pb2.Suite] | None = None,
) -> results_service_pb2.GetLeaderboardResponse:
    """`announced` are the suites that evaluators know.

    Raises UnknownSuiteError when the runs alone cannot tell whether suite and metric exist and `announced` is not
    given, and InvalidRequestError when they do not exist.
    """
    metrics = _metrics(connection, request.suite, announced)
    metric = request.metric or SCORE
    if metric not in metrics:
        if announced is None:
            raise UnknownSuiteError
        raise InvalidRequestError(
            f"Suite {request.suite} has no metric {metric!r}. It has: {', '.join(metrics)}.", "metric"
        )
    if request.limit < 0:
        raise InvalidRequestError(f"limit is {request.limit}; it may be 1 to 1000, or 0 for 10.", "limit")
    where = {
        "suite": request.suite,
        "mode": int(request.mode) or int(suite_pb2.MODE_GENERATE),
        "endpoint": request.endpoint,
        "item_set": request.item_set,
    }
    response = results_service_pb2.GetLeaderboardResponse(item_set=request.item_set, metrics=metrics)
    found = first_row(connection, query("leaderboard_sets"), where)
    if found is None:
        return response
    response.item_set, newest, response.subset = found[0], job_pb2.Job.FromString(found[1]), found[2]
    response.items = sum(plan.items for plan in newest.plan)
    response.published_items = newest.published_items or sum(plan.published_items for plan in newest.plan)
    where |= {"item_set": response.item_set, "metric": metric}
    rows = connection.execute(query("leaderboard_rows"), where).fetchall()
    entries, response.total_models = ranking.rank(
        (_entry(metric, row) for row in rows), limit=min(request.limit or 10, 1000)
    )
    response.entries.extend(entries)
    if entries:
        response.last_updated.CopyFrom(max((e.completed_at for e in entries), key=Timestamp.ToNanoseconds))
    return response


def _metrics(connection: Connection, suite: str, announced: Iterable[suite_pb2.Suite] | None) -> list[str]:
    """What a suite can be ranked by: "score" first, then metrics in task order."""
    known = {name for (name,) in connection.execute("SELECT DISTINCT suite FROM jobs WHERE suite <> ''").fetchall()}
    names: list[str] = []
    for listed in announced or ():
        known.add(listed.suite)
        if listed.open and suite.startswith(f"{listed.suite}:"):
            known.add(suite)
        if listed.suite == suite:
            names += [spec.metric for task in listed.tasks for spec in task.metrics]
    if suite not in known:
        if announced is None:
            raise UnknownSuiteError
        supported = ", ".join(sorted(known)) or "none yet; start an evaluator"
        raise InvalidRequestError(f"Invalid benchmark suite. Supported: {supported}", "suite")
    stored = connection.execute(
        "SELECT m.metric FROM metrics m JOIN seals s USING (job_id) WHERE s.suite = $suite AND m.task = '' "
        "GROUP BY m.metric ORDER BY min(m.place), m.metric",
        {"suite": suite},
    ).fetchall()
    return list(dict.fromkeys([SCORE, *(name for (name,) in stored), *names]))


def _entry(metric: str, row: tuple[Any, ...]) -> metric_pb2.LeaderboardEntry:
    sealed_job, present_job, sealed_at, sealed, runs, tasks, *numbers = row
    planned = job_pb2.Job.FromString(sealed_job)
    present = job_pb2.Job.FromString(present_job)
    result = metric_pb2.JobResult.FromString(sealed)
    names = ("n", "mean", "stderr", "ci95_low", "ci95_high", "bound_low", "bound_high", "method", "undefined_reason")
    entry = metric_pb2.LeaderboardEntry(
        model=planned.spec.model,
        endpoint=planned.spec.endpoint,
        endpoint_kind=planned.receipt.endpoint_kind,
        configuration=planned.receipt.configuration,
        job_id=planned.job_id,
        score=metric_pb2.Metric(metric=metric, **dict(zip(names, numbers, strict=True))),
        task_count=tasks,
        run_count=runs,
        baseline=planned.baseline,
        tasks=result.tasks,
        averages=result.averages,
        not_ranked_reason=result.not_ranked_reason,
        mode=planned.spec.mode or suite_pb2.MODE_GENERATE,
        state=job_pb2.Job.STATE_COMPLETED,
    )
    if present.HasField("finished_at"):
        entry.completed_at.CopyFrom(present.finished_at)
    else:
        entry.completed_at.FromDatetime(sealed_at.replace(tzinfo=UTC))
    seconds = planned.progress.elapsed_s
    # Answers from the store took no time here.
    entry.tokens_per_second = result.output_tokens / seconds if seconds > 0 and not result.items_reused else 0.0
    return entry
