"""The leaderboard of a suite: one row per configuration, for its newest complete run, within one item set; and newer
runs that are incomplete or invalid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from services.errors import InvalidRequestError
from services.results.comparison.rank_ranges import RankRangesOf
from services.results.runs import job_reads
from services.results.scores import ranking
from services.results.scores.suite_score import SCORE
from services.results.storage import run_scores
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals, suites
from services.words.jobs import asked_mode, require_project
from services.words.suites import unknown_suite
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2

_DETAIL_BYTES = 3 * 1024 * 1024
"""A message holds 4 MB, and an entry with 57 tasks takes 10 KB."""
_NEWEST = 7
"""Index of `newest` in a row of boards/leaderboard_rows.sql; 0 for a run that cannot represent its configuration."""
_WEIGHTING = 8
"""Index of `weighting` in a row of boards/leaderboard_sets.sql."""


class UnknownSuiteError(Exception):
    """No run and no dataset names the suite; it may still be one that an evaluator announces."""


def leaderboard(
    connection: Connection,
    request: results_service_pb2.GetLeaderboardRequest,
    announced: Sequence[suite_pb2.Suite] | None = None,
    visible: Visibility = EVERYTHING,
    places: RankRangesOf | None = None,
) -> results_service_pb2.GetLeaderboardResponse:
    """`announced` are the suites that evaluators know; `places` gives the rank ranges.

    Raises UnknownSuiteError when the runs alone do not show whether suite and metric exist and `announced` is not
    given, and InvalidRequestError when they do not exist.
    """
    mode, asked = asked_mode(request.mode), suites.asked(request.weighting)
    require_project(request.project_id)
    metrics = suite_metrics(connection, request.suite, announced, visible)
    metric = request.metric or SCORE
    if metric not in metrics:
        if announced is None:
            raise UnknownSuiteError
        raise InvalidRequestError(
            f"Suite {request.suite} has no metric {metric!r}. Its metrics: {', '.join(metrics)}.", "metric"
        )
    if request.limit < 0:
        raise InvalidRequestError(refusals.between("limit", 0, 1000, zero="10"), "limit")
    runs, board = _runs_of(connection, request, mode, visible)
    where = board | {"endpoint": request.endpoint}
    rows = connection.execute(query("boards/leaderboard_sets").format(runs=runs), where).fetchall()
    response = results_service_pb2.GetLeaderboardResponse(item_set=request.item_set, metrics=metrics)
    if not _add_item_sets(response, rows, asked):
        if request.item_set:
            _require_item_set(connection, request, visible)
        return response
    average = suites.average_name(metric, response.weighting)
    entries = _entries(connection, runs, where | {"item_set": response.item_set}, metric, average)
    if entries:
        response.last_updated.CopyFrom(max((e.completed_at for e in entries), key=Timestamp.ToNanoseconds))
    ranked, response.total_models = ranking.rank(entries, limit=min(request.limit or 10, 1000))
    if places is not None:
        found = places(average, [e.job_id for e in sorted(entries, key=lambda e: e.rank) if e.rank])
        response.places_pending = found is None
        _add_places(ranked, found or {})
    _add_details(connection, ranked)
    response.entries.extend(ranked)
    return response


def _runs_of(
    connection: Connection,
    request: results_service_pb2.GetLeaderboardRequest,
    mode: int,
    visible: Visibility,
) -> tuple[str, dict[str, Any]]:
    """The FROM clause of the runs that may be on the board, with its parameters."""
    board = {"suite": request.suite, "mode": mode}
    if not request.project_id and not visible.owner:
        return query("boards/current_runs"), board
    # For all runs the choice is stored; for some it is made, once for both queries of a board.
    chosen = f"CREATE OR REPLACE TEMP TABLE board_runs AS {query('boards/chosen_runs')}"
    connection.execute(chosen, board | {"project_id": request.project_id, **visible.parameters})
    return "FROM board_runs", {}


def _add_item_sets(
    response: results_service_pb2.GetLeaderboardResponse, rows: list[tuple[Any, ...]], asked: suite_pb2.Weighting
) -> bool:
    """Adds the item sets, and the shown set's facts about the board. False if there is none to show."""
    sets = _item_sets(rows)
    wanted = response.item_set
    shown = next((found for found in sets if not wanted or found.item_set == wanted), None)
    if shown is None:
        response.item_sets.extend(sets)
        return False
    response.item_sets.extend([shown, *(found for found in sets if found is not shown)])
    response.item_set, response.subset = shown.item_set, shown.subset
    response.items, response.published_items = shown.items, shown.published_items
    response.suite_weighting = next(row[_WEIGHTING] for row in rows if row[0] == shown.item_set) or suites.UNSPECIFIED
    response.weighting = response.suite_weighting and (asked or response.suite_weighting)
    return True


def _entries(
    connection: Connection, runs: str, where: Mapping[str, Any], metric: str, average: str
) -> list[metric_pb2.LeaderboardEntry]:
    """Every run of the shown item set, not ranked yet."""
    text = query("boards/leaderboard_rows").format(
        runs=runs, metric=", ".join(f"c.{name}" for name in run_scores.METRIC_COLUMNS)
    )
    rows = connection.execute(text, {**where, "metric": metric, "average": average}).fetchall()
    entries = [_by_rule(_entry(row), metric, average) for row in rows]
    _add_marks(connection, [entry for entry, row in zip(entries, rows, strict=True) if row[_NEWEST] == 0])
    return entries


def _require_item_set(
    connection: Connection, request: results_service_pb2.GetLeaderboardRequest, visible: Visibility
) -> None:
    """Raises InvalidRequestError for an item set without a finished run: a board without rows would suggest that the
    item set exists and nothing ranks."""
    known = first_row(
        connection,
        "SELECT 1 FROM run_scores WHERE suite = $suite AND item_set = $item_set "
        "AND ($visible_owner = '' OR owner = $visible_owner) LIMIT 1",
        {"suite": request.suite, "item_set": request.item_set, **visible.parameters},
    )
    if known is None:
        raise InvalidRequestError(
            f"No finished run of {request.suite} uses the item set {request.item_set[:80]!r}. Use one of the "
            "leaderboard's item_sets, or leave it out.",
            "item_set",
        )


def _add_places(entries: Sequence[metric_pb2.LeaderboardEntry], places: Mapping[str, tuple[int, int]]) -> None:
    for entry in entries:
        entry.rank_low, entry.rank_high = places.get(entry.job_id, (0, 0))


def suite_metrics(
    connection: Connection,
    suite: str,
    announced: Sequence[suite_pb2.Suite] | None,
    visible: Visibility = EVERYTHING,
) -> list[str]:
    """The metrics that a suite can be ranked by: "score" first, then metrics in task order. Raises as `leaderboard`."""
    where = {"suite": suite, **visible.parameters}
    seen = "($visible_owner = '' OR owner = $visible_owner)"
    # Everybody's current runs have every metric; this user may have none of them.
    runs = "run_scores" if visible.owner else "current_scores"
    rows = connection.execute(
        f"SELECT metric FROM {runs} WHERE suite = $suite AND {seen} GROUP BY metric ORDER BY min(place), metric", where
    ).fetchall()
    names = list(dict.fromkeys(suites.parted(name)[0] for (name,) in rows))
    named = (
        f"SELECT 1 FROM jobs WHERE suite = $suite AND {seen} "
        f"UNION ALL SELECT 1 FROM datasets WHERE id = $suite AND {seen} LIMIT 1"
    )
    known = bool(names) or (suite != "" and first_row(connection, named, where))
    for listed in announced or ():
        known = known or listed.suite == suite or (listed.open and suite.startswith(f"{listed.suite}:"))
        if listed.suite == suite:
            names += [spec.metric for task in listed.tasks for spec in task.metrics]
    if not known:
        if announced is None:
            raise UnknownSuiteError
        stored = connection.execute(
            f"SELECT DISTINCT suite FROM jobs WHERE suite <> '' AND NOT starts_with(suite, 'ds_') AND {seen}",
            visible.parameters,
        ).fetchall()
        raise unknown_suite((listed.suite for listed in announced), (name for (name,) in stored))
    return list(dict.fromkeys([SCORE, *names]))


def _item_sets(rows: list[tuple[Any, ...]]) -> list[results_service_pb2.ItemSet]:
    """The one to show first, then the newest."""
    ordered = rows[:1] + sorted(rows[1:], key=lambda row: row[-1], reverse=True)
    return [
        results_service_pb2.ItemSet(
            item_set=item_set,
            items=items or 0,
            published_items=published or 0,
            subset=subset,
            configurations=models or floors,
            tasks=tasks or [],
            scoring=scored or "",
        )
        for item_set, items, published, subset, models, floors, tasks, scored, *_ in ordered
    ]


def _entry(row: tuple[Any, ...]) -> metric_pb2.LeaderboardEntry:
    """The columns that decide ranks, without those that must be unpacked."""
    job_id, configuration, model, endpoint, baseline, completed_at, reason, _, runs, tasks, before, *rest = row
    previous_mean, name, alias, *metric = rest
    entry = metric_pb2.LeaderboardEntry(
        job_id=job_id,
        configuration=configuration,
        model=model,
        endpoint=endpoint,
        baseline=baseline,
        not_ranked_reason=reason,
        run_count=runs,
        task_count=tasks,
        previous_job_id=before or "",
        previous_mean=previous_mean,
        name=name,
        alias=alias,
        score=run_scores.metric_of(metric),
        state=job_pb2.Job.STATE_COMPLETED,
    )
    entry.completed_at.FromDatetime(completed_at.replace(tzinfo=UTC))
    return entry


def _by_rule(entry: metric_pb2.LeaderboardEntry, metric: str, average: str) -> metric_pb2.LeaderboardEntry:
    """Scores by different rules are not ranked together: a run without the requested one waits for it."""
    if entry.score.metric != average and not entry.not_ranked_reason:
        entry.not_ranked_reason = f"the {average} is still being computed; try again in a moment"
    entry.score.metric = metric
    return entry


def _add_marks(connection: Connection, entries: Sequence[metric_pb2.LeaderboardEntry]) -> None:
    """Says why runs that were taken out of rankings do not rank. Incomplete ones have their reason from their seal."""
    if not entries:
        return
    present = job_reads.uncounted(connection, [entry.job_id for entry in entries])
    for entry in entries:
        mark = present.get(entry.job_id)
        if mark is None:
            continue
        entry.not_ranked_reason = mark.words
        entry.mark = "" if mark.source else mark.name


def _add_details(connection: Connection, entries: Sequence[metric_pb2.LeaderboardEntry]) -> None:
    job_ids = [entry.job_id for entry in entries]
    jobs = job_reads.jobs_by_id(connection, job_ids)
    results = _results(connection, job_ids)
    room = _DETAIL_BYTES
    for entry in entries:
        job, result = jobs[entry.job_id], results[entry.job_id]
        entry.endpoint_kind = job.receipt.endpoint_kind
        entry.mode = job.spec.mode or suite_pb2.MODE_GENERATE
        entry.shots, entry.repeats = job.spec.suite.shots, max(1, job.spec.suite.repeats)
        entry.project_id = job.spec.project_id
        room -= job.receipt.ByteSize() + result.ByteSize()
        if room > 0:
            entry.receipt.CopyFrom(job.receipt)
            entry.tasks.extend(result.tasks)
            entry.averages.extend(result.averages)
        entry.caution = result.caution
        entry.unread.extend(result.unread)
        if result.HasField("cost_usd"):
            entry.cost_usd = result.cost_usd
        seconds = job.progress.elapsed_s
        # Answers from the store took no time in this job.
        if seconds > 0 and not result.items_reused:
            entry.tokens_per_second = result.output_tokens / seconds


def _results(connection: Connection, job_ids: Sequence[str]) -> Mapping[str, metric_pb2.JobResult]:
    rows = connection.execute(
        "SELECT job_id, result FROM seals WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[]))", {"job_ids": job_ids}
    ).fetchall()
    return {job_id: metric_pb2.JobResult.FromString(blob) for job_id, blob in rows}
