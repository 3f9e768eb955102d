"""Averages of sealed runs as boards, trends and overviews read them, updated whenever their sources change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.results.storage.database import Connection, first_row, query
from services.words import scorers, suites
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.results_service_pb2 import RUN_MARK_VALID
from touchstone.v1.suite_pb2 import WEIGHTING_UNSPECIFIED

METRIC_COLUMNS = (
    *("metric", "n", "mean", "stderr", "ci95_low", "ci95_high", "bound_low", "bound_high"),
    *("method", "undefined_reason", "answered_mean"),
)
"""The fields of a Metric that a row holds, by name."""

_KEY = ("suite", "mode", "item_set", "configuration")
_OF_KEY = " AND ".join(f"{name} = ${name}" for name in _KEY)


def metric_of(values: Sequence[Any]) -> metric_pb2.Metric:
    """The message for a row selected as METRIC_COLUMNS."""
    return metric_pb2.Metric(**dict(zip(METRIC_COLUMNS, values, strict=True)))


def add(connection: Connection, job: job_pb2.Job) -> None:
    """Takes over the averages of a job that is sealed in this transaction, after all its other rows. Runs of watches
    are on no board: their items were chosen to tell models apart. Neither are replays."""
    if job.spec.HasField("watching") or job.spec.replays_job_id:
        return
    where = {"job_id": job.job_id}
    before = _keys(connection, job.job_id)
    if before:
        connection.execute("DELETE FROM run_scores WHERE job_id = $job_id", where)
    of_job = {
        "which": "s.job_id = $job_id AND j.job_id = $job_id AND m.job_id = $job_id",
        "uncounted": "SELECT job_id FROM uncounted_runs",
        "later": ", s.caution, m.answered_mean",
    }
    connection.execute(query("storage/add_run_scores").format(**of_job), where)
    add_item_set(connection, job)
    add_weighting(connection, job)
    for key in {*before, *_keys(connection, job.job_id)}:
        _choose_current(connection, key)


def remove(connection: Connection, job_id: str) -> None:
    """Forgets a run: the one before it represents its configuration again."""
    keys = _keys(connection, job_id)
    connection.execute("DELETE FROM run_scores WHERE job_id = $job_id", {"job_id": job_id})
    for key in keys:
        _choose_current(connection, key)


def refresh(connection: Connection, job_id: str) -> None:
    """Lets a sealed run count or not, by its job's current state, attempt and marks."""
    before = first_row(
        connection, "SELECT counts, completed_at FROM run_scores WHERE job_id = $job_id LIMIT 1", {"job_id": job_id}
    )
    if before is None:
        return
    now = first_row(connection, query("storage/run_state"), {"job_id": job_id})
    if now is None:
        return
    if before != now:
        for table in ("run_scores", "current_scores"):
            connection.execute(
                f"UPDATE {table} SET counts = $counts, completed_at = $completed_at WHERE job_id = $job_id",
                {"counts": now[0], "completed_at": now[1], "job_id": job_id},
            )
    # Of a run that counts neither before nor now the mark may have changed.
    if not (now[0] and before[0]):
        for key in _keys(connection, job_id):
            _choose_current(connection, key)


def fill(connection: Connection) -> None:
    """Migration 4: rebuilds everything from the sealed jobs, without item sets."""
    connection.execute("DELETE FROM run_scores")
    # Without the view of uncounted runs and without later columns: an older schema, which a migration fills in, does
    # not have them.
    uncounted = f"SELECT job_id FROM present_marks WHERE mark <> {RUN_MARK_VALID}"
    connection.execute(query("storage/add_run_scores").format(which="true", uncounted=uncounted, later=""))
    connection.execute("DELETE FROM current_scores")
    connection.execute(query("storage/choose_current").format(which="true"))


def fill_unranked(connection: Connection) -> None:
    """Incomplete and invalid runs of every configuration that has no newer one to rank, where none are chosen yet."""
    connection.execute(query("storage/choose_unranked").format(which="true"))


def add_item_set(connection: Connection, job: job_pb2.Job) -> None:
    """Notes the items that a job was planned to run."""
    connection.execute(
        "INSERT INTO item_sets (suite, item_set, items, published_items, subset, tasks) "
        "VALUES ($suite, $item_set, $items, $published_items, $subset, $tasks) "
        "ON CONFLICT DO UPDATE SET items = excluded.items, published_items = excluded.published_items, "
        "subset = excluded.subset, tasks = excluded.tasks",
        {
            "suite": suite_of(job.spec),
            "item_set": job.item_set,
            "items": sum(plan.items for plan in job.plan),
            "published_items": job.published_items or sum(plan.published_items for plan in job.plan),
            "subset": job.subset,
            "tasks": [plan.task for plan in job.plan],
        },
    )
    # Separate: an older schema, whose suites a migration fills in, has no such column and no datasets.
    if scored := scorers.of_items(job):
        connection.execute(
            "UPDATE item_sets SET scoring = $scoring WHERE suite = $suite AND item_set = $item_set",
            {"scoring": scored, "suite": suite_of(job.spec), "item_set": job.item_set},
        )


def add_weighting(connection: Connection, job: job_pb2.Job) -> None:
    """Notes by which rule runs on these items are ranked: as the newest plan says, else by the suite's known rule."""
    connection.execute(
        "UPDATE item_sets SET weighting = $weighting "
        f"WHERE suite = $suite AND item_set = $item_set AND ($declared OR weighting = {WEIGHTING_UNSPECIFIED})",
        {
            "weighting": suites.of_plans(suites.complete(job).plan),
            "declared": all(plan.weighting for plan in job.plan),
            "suite": suite_of(job.spec),
            "item_set": job.item_set,
        },
    )


def _keys(connection: Connection, job_id: str) -> list[tuple[Any, ...]]:
    """Where a sealed job competes: one row, or none."""
    return connection.execute(
        f"SELECT DISTINCT {', '.join(_KEY)} FROM run_scores WHERE job_id = $job_id", {"job_id": job_id}
    ).fetchall()


def _choose_current(connection: Connection, key: tuple[Any, ...]) -> None:
    where = dict(zip(_KEY, key, strict=True))
    connection.execute(f"DELETE FROM current_scores WHERE {_OF_KEY}", where)
    for chosen in ("storage/choose_current", "storage/choose_unranked"):
        connection.execute(query(chosen).format(which=_OF_KEY), where)
