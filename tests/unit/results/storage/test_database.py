"""Who waits for whom at the database."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import duckdb
import pytest

from services.results.export.exports import export
from services.results.intake import writes
from services.results.storage.database import Connection, Database
from services.results.visibility import EVERYTHING
from tests.unit.results.builders import event, job, plan
from touchstone.v1 import results_service_pb2 as pb


async def test_ten_comparisons_keep_no_item_page_waiting(database: Database) -> None:
    done = threading.Event()
    long = [asyncio.create_task(database.read_long(lambda c: done.wait(120))) for _ in range(10)]
    await asyncio.sleep(0.05)
    try:
        for _ in range(20):
            assert await asyncio.wait_for(database.read(lambda c: c.execute("SELECT 1").fetchall()), 60) == [(1,)]
        assert not any(one.done() for one in long)
    finally:
        done.set()
    assert all(await asyncio.gather(*long))


class Watched:
    """A connection that keeps what it was asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.asked: list[str] = []

    def execute(self, sql: str, parameters: Any = None) -> Any:
        self.asked.append(sql)
        return self._connection.execute(sql, parameters)


@pytest.mark.stack
def test_a_file_of_many_jobs_reads_pages_and_counts_nothing(connection: Connection) -> None:
    watched = Watched(connection)
    writes.store_events(connection, [event(f"{n:04d}", job(f"j{n}", plan("t", 1), minute=n)) for n in range(250)])
    request = pb.ExportRequest(kind=pb.ExportRequest.KIND_JOBS, format=pb.ExportRequest.FORMAT_JSONL)
    data = b"".join(piece.data for piece in export(watched, request, EVERYTHING))  # type: ignore[arg-type]
    assert data.count(b"\n") == 250
    pages = [sql for sql in watched.asked if "FROM jobs" in sql and "LIMIT" in sql]
    assert len(pages) == 3
    assert not [sql for sql in watched.asked if "count(*)" in sql and "FROM jobs" in sql]


def test_the_database_reaches_no_file_but_its_own_and_its_settings_are_locked(connection: Connection) -> None:
    for statement in (
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY items TO '/tmp/items.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)
