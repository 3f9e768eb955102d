"""What a migration computes for runs stored before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import overview
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.runs.mark_run import mark_run
from services.results.storage.database import Connection
from services.results.storage.migrations import fill_run_sources, migrations, open_file
from services.rpc import LOCAL
from tests.unit.results.builders import START, event, job, plan, run
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2

RUNNING, COMPLETED, FAILED = (job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED)


@pytest.fixture
def with_runs(tmp_path: Path) -> Path:
    """A file as migrations 1 to 3 left it, with two sealed runs of a configuration, a failed one and one under way."""
    path = tmp_path / "runs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, applied_at TIMESTAMP)")
        for number, schema in migrations()[:3]:
            connection.execute(schema)
            connection.execute("INSERT INTO migrations VALUES ($number, now()::TIMESTAMP)", {"number": number})
        for minute, (job_id, state, mean) in enumerate(
            (("first", COMPLETED, 0.5), ("second", COMPLETED, 0.75), ("failed", FAILED, 0.25), ("live", RUNNING, None))
        ):
            made = job(job_id, plan("t", 4), state=state, minute=minute)
            if state != RUNNING:
                made.finished_at.FromDatetime(START + timedelta(minutes=minute, seconds=40))
            values = {"job_id": job_id, "at": START.replace(tzinfo=None) + timedelta(minutes=minute)}
            connection.execute(
                "INSERT INTO jobs VALUES ($job_id, $event, 'ann', 1, 'glue', 'local', 'm1', $state, 1, $at, $job)",
                values | {"event": f"{minute:06d}", "state": state, "job": made.SerializeToString()},
            )
            if mean is None:
                continue
            result = metric_pb2.JobResult(
                job_id=job_id, sealed=True, not_ranked_reason="too late" if mean < 0.5 else ""
            )
            blobs = {"job": made.SerializeToString(), "result": result.SerializeToString()}
            connection.execute(
                "INSERT INTO seals VALUES ($job_id, 1, $at, 0, 0, true, 'glue', 1, 'set-1', false, 'm1@local', "
                "$job, $result)",
                values | blobs,
            )
            for task, metric in (("t", "accuracy"), ("", "score"), ("", "accuracy")):
                connection.execute(
                    "INSERT INTO metrics VALUES ($job_id, $task, $metric, 0, 1, 4, $mean, 0.1, 0.2, 0.9, $mean, $mean, "
                    "'wilson', '')",
                    {"job_id": job_id, "task": task, "metric": metric, "mean": mean},
                )
        connection.execute("INSERT INTO current_scores VALUES ('glue', 1, 'set-1', 'm1@local', 'second')")
    return path


def test_runs_stored_before_the_migration_rank_and_count_as_new_ones_do(with_runs: Path) -> None:
    connection = open_file(with_runs)
    board = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue", metric="accuracy"))
    (entry,) = board.entries
    assert (entry.job_id, entry.score.mean, entry.run_count, entry.rank) == ("second", 0.75, 2, 1)
    assert (entry.previous_job_id, entry.previous_mean) == ("first", 0.5)
    assert entry.completed_at.ToDatetime() == START.replace(tzinfo=None) + timedelta(minutes=1, seconds=40)
    assert [(s.item_set, s.items, list(s.tasks)) for s in board.item_sets] == [("set-1", 4, ["t"])]
    now = START.replace(tzinfo=None) + timedelta(days=1)
    figures = overview(connection, results_service_pb2.GetOverviewRequest(days=30), now)
    assert (figures.total_jobs, figures.completed_jobs, figures.failed_jobs, figures.models) == (4, 2, 1, 1)
    assert (figures.mean, figures.runs_with_metric, figures.latest.job_id) == (0.625, 2, "second")
    connection.close()


def test_a_run_stored_before_the_migration_can_be_cancelled_and_sealed_again(with_runs: Path) -> None:
    connection = open_file(with_runs)
    cancelled = job("second", plan("t", 4), state=job_pb2.Job.STATE_CANCELLED, minute=1)
    writes.store_events(connection, [event("000009", cancelled)])
    board = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue"))
    assert [entry.job_id for entry in board.entries] == ["first"]
    run(connection, job("third", plan("t", 4)), right=4, minute=5)
    board = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue"))
    assert [(entry.job_id, entry.previous_job_id) for entry in board.entries] == [("third", "first")]
    connection.close()


def test_runs_built_on_an_invalidated_run_before_the_migration_do_not_rank_after_it(connection: Connection) -> None:
    for minute, (job_id, source) in enumerate((("first", ""), ("second", ""), ("third", "second"))):
        made = job(job_id, plan("t", 4))
        made.spec.reuse.job_id = source
        run(connection, made, right=4, minute=minute)
    connection.execute("DELETE FROM run_sources")
    connection.execute("INSERT INTO marks VALUES (1, 'second', 2, 'wrong prompt', '', 'ann', now()::TIMESTAMP)")
    fill_run_sources(connection)
    assert connection.execute("FROM run_sources").fetchall() == [("third", "second")]
    reason = "its answers come from job second, which was invalidated: wrong prompt"
    assert job_reads.get_job_result(connection, "third").not_ranked_reason == reason
    counting = connection.execute("SELECT DISTINCT job_id FROM run_scores WHERE counts ORDER BY 1").fetchall()
    assert counting == [("first",), ("second",)], "marks themselves were heeded before"


def test_a_run_invalidated_before_the_migration_is_on_the_board_with_its_reason_after_it(tmp_path: Path) -> None:
    path = tmp_path / "marked.duckdb"
    connection = open_file(path)
    run(connection, job("first", plan("t", 4)), right=4, minute=1)
    run(connection, job("second", plan("t", 4)), right=4, minute=2)
    invalid = results_service_pb2.MarkRunRequest(
        job_id="second", mark=results_service_pb2.RUN_MARK_INVALIDATED, reason="a wrong prompt"
    )
    mark_run(connection, invalid, LOCAL, START.replace(tzinfo=None))
    # As the schema before left it.
    connection.execute("DELETE FROM current_scores WHERE newest = 0")
    connection.execute("DELETE FROM migrations WHERE number = 9")
    connection.close()
    connection = open_file(path)
    entries = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue")).entries
    assert [(entry.rank, entry.job_id, entry.mark) for entry in entries] == [
        (1, "first", ""),
        (0, "second", "invalidated"),
    ]
    connection.close()
