"""A database that an earlier version wrote is read and written on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from services.results import backfill, duckdb_store, item_reads, job_reads
from services.results.database import Connection
from services.results.leaderboard import leaderboard
from services.results.marking import mark_run
from services.results.overview import overview
from services.results.schema import migrations, open_file
from services.results.stored_responses import find_responses
from services.rpc import LOCAL
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2

RUNNING, COMPLETED, FAILED = (job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED)

OLD_ROW = """
    INSERT INTO items VALUES (
        'j', 't', {item}, 0, 1, 0, {item}, {outcome}, 'yes', 'yes', '', '', 'h', 'p', 'Q', 'answer: yes', '', '1',
        1.0, NULL, NULL, '{{"overlap": 0.5}}', 12.5, 20, 3, 'stop', 1, '', 'whole', 'm', 'e1'
    )
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file as migration 1 alone left it, with an answer and an error."""
    path = tmp_path / "old.duckdb"
    number, schema = migrations()[0]
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, applied_at TIMESTAMP)")
        connection.execute(schema)
        connection.execute("INSERT INTO migrations VALUES ($number, now()::TIMESTAMP)", {"number": number})
        for item, outcome in enumerate((1, ERROR)):
            connection.execute(OLD_ROW.format(item=item, outcome=outcome))
    return path


def test_items_stored_before_a_migration_are_read_with_the_new_fields_empty(old: Path) -> None:
    connection = open_file(old)
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", 2)))])
    request = results_service_pb2.GetItemRequest(job_id="j", task="t", item=0)
    found = item_reads.get_item(connection, request).result
    assert (found.response, found.statistics["overlap"]) == ("answer: yes", 0.5)
    assert (found.identity, found.parameters, found.reused, found.ttft_ms) == ("", "", False, 0)
    assert not found.HasField("cost_usd")
    assert not found.continuations
    connection.close()


def test_a_migrated_file_takes_new_items_and_measures_old_and_new_together(old: Path) -> None:
    connection = open_file(old)
    duckdb_store.store_events(connection, [event("0001", job("j", plan("t", 3)))])
    duckdb_store.store_items(connection, [batch("j", "t", [answer(1, identity="0f" * 16), answer(2, "no")], 2)])
    result = job_reads.get_job_result(connection, "j")
    assert result.tasks[0].metrics[0].mean == pytest.approx(2 / 3)
    assert result.tasks[0].items == 3
    assert result.items_reused == 0
    request = results_service_pb2.FindResponsesRequest(identities=["0f" * 16])
    assert [r.item for r in find_responses(connection, request).results] == [1]
    connection.close()


def test_a_migrated_file_has_the_schema_of_a_new_one(old: Path, tmp_path: Path) -> None:
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY ALL"
    migrated, new = open_file(old), open_file(tmp_path / "new.duckdb")
    assert migrated.execute(columns).fetchall() == new.execute(columns).fetchall()
    applied = migrated.execute("SELECT number FROM migrations ORDER BY 1").fetchall()
    assert applied == [(number,) for number, _ in migrations()]
    migrated.close()
    new.close()


def test_rows_of_before_keep_their_counts_and_sources_and_new_ones_may_have_none(old: Path) -> None:
    with duckdb.connect(str(old)) as connection:
        for number, schema in migrations()[1:6]:
            connection.execute(schema)
            connection.execute("INSERT INTO migrations VALUES ($number, now()::TIMESTAMP)", {"number": number})
        connection.execute("INSERT INTO run_sources VALUES ('j', 'first')")
    connection = open_file(old)
    known = answer(1, source_job="second")
    silent = answer(2, input_untold=True, source_job="first")
    duckdb_store.store_items(connection, [batch("j", "t", [known, silent], 2)])
    counts = connection.execute("SELECT input_tokens FROM items WHERE job_id = 'j' ORDER BY item").fetchall()
    assert counts == [(20,), (20,), (None,)]
    sources = connection.execute("FROM run_sources ORDER BY ALL").fetchall()
    assert sources == [("j", "first"), ("j", "second")]
    connection.close()


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
    duckdb_store.store_events(connection, [event("000009", cancelled)])
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
    backfill.fill_run_sources(connection)
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
