"""A database that an earlier version wrote is read and written on."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from services.errors import UnavailableError
from services.results.intake import writes
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.migrations import migrations, open_file
from services.results.storage.stored_responses import find_responses
from tests.unit.results.builders import ERROR, answer, batch, event, job, plan
from tests.unit.results.intake.written import store
from touchstone.v1 import results_service_pb2

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
    writes.store_events(connection, [event("0001", job("j", plan("t", 2)))])
    request = results_service_pb2.GetItemRequest(job_id="j", task="t", item=0)
    found = reads.get_item(connection, request).result
    assert (found.response, found.statistics["overlap"]) == ("answer: yes", 0.5)
    assert (found.identity, found.parameters, found.reused, found.ttft_ms) == ("", "", False, 0)
    assert not found.HasField("cost_usd")
    assert not found.continuations
    connection.close()


def test_a_migrated_file_takes_new_items_and_measures_old_and_new_together(old: Path) -> None:
    connection = open_file(old)
    writes.store_events(connection, [event("0001", job("j", plan("t", 3)))])
    writes.store_items(connection, [batch("j", "t", [answer(1, identity="0f" * 16), answer(2, "no")], 2)])
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
    writes.store_items(connection, [batch("j", "t", [known, silent], 2)])
    counts = connection.execute("SELECT input_tokens FROM items WHERE job_id = 'j' ORDER BY item").fetchall()
    assert counts == [(20,), (20,), (None,)]
    sources = connection.execute("FROM run_sources ORDER BY ALL").fetchall()
    assert sources == [("j", "first"), ("j", "second")]
    connection.close()


def test_opening_again_applies_no_migration_twice_and_keeps_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.duckdb"
    first = open_file(path)
    store(first, answer(0))
    first.close()
    second = open_file(path)
    assert second.execute("SELECT count(*) FROM items").fetchone() == (1,)
    assert second.execute("SELECT number FROM migrations").fetchall() == [(number,) for number, _ in migrations()]
    second.close()


def test_a_database_of_a_newer_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "b.duckdb"
    newer = open_file(path)
    newer.execute("INSERT INTO migrations VALUES (99, now()::TIMESTAMP)")
    newer.close()
    with pytest.raises(UnavailableError, match="newer Touchstone"):
        open_file(path)
