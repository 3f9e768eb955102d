"""An export while it is under way: one snapshot, no writer waits, little memory, an end for who stops reading."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from services.errors import LimitReachedError, NotFoundError
from services.results import duckdb_store
from services.results.database import Connection, Database
from services.results.export.exports import export
from services.results.export.serving import AT_ONCE, Exports
from services.results.schema import open_file
from services.results.visibility import EVERYTHING
from tests.unit.results.builders import answer, batch, event, job, plan
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ExportRequest

ITEMS = 400
TEXT_BYTES = 50_000


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Job "j" with 20 MB of answers."""
    opened = Database(open_file(tmp_path / "results.duckdb"))

    def fill(connection: Connection) -> None:
        duckdb_store.store_events(connection, [event("0001", job("j", plan("t", ITEMS)))])
        for start in range(0, ITEMS, 50):
            made = [answer(i, response=f"{i:05d}" * (TEXT_BYTES // 5)) for i in range(start, start + 50)]
            duckdb_store.store_items(connection, [batch("j", "t", made)])

    await opened.write(fill)
    yield opened
    await opened.close()


def request(format_: ExportRequest.Format = ExportRequest.FORMAT_JSONL, job_id: str = "j") -> ExportRequest:
    return ExportRequest(kind=ExportRequest.KIND_ITEMS, format=format_, items=pb.ListItemsRequest(job_id=job_id))


async def test_an_export_is_one_snapshot_and_keeps_no_writer_waiting(database: Database) -> None:
    async with aclosing(Exports(database).serve(request(), EVERYTHING)) as pieces:
        data = (await anext(pieces)).data

        def change(connection: Connection) -> None:
            duckdb_store.store_items(connection, [batch("j", "t", [answer(ITEMS)])])
            connection.execute("UPDATE items SET response = 'changed' WHERE job_id = 'j'")

        async with asyncio.timeout(60):
            await database.write(change)
            assert len(await database.read(lambda c: c.execute("SELECT 1 FROM items").fetchall())) == ITEMS + 1
        async for piece in pieces:
            data += piece.data
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["item"] for line in lines] == list(range(ITEMS))
    assert all(len(line["response"]) == TEXT_BYTES for line in lines)


@pytest.mark.parametrize("format_", [ExportRequest.FORMAT_CSV, ExportRequest.FORMAT_JSON, ExportRequest.FORMAT_PARQUET])
async def test_an_export_holds_a_small_part_of_the_file(database: Database, format_: ExportRequest.Format) -> None:
    def measure(connection: Connection) -> int:
        for _ in export(connection, request(format_)):
            pass
        tracemalloc.start()
        for _ in export(connection, request(format_)):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    assert await database.read(measure) < ITEMS * TEXT_BYTES / 2


async def test_exports_are_a_few_at_once_and_each_leaves_its_place(database: Database) -> None:
    exports = Exports(database)
    held = [exports.serve(request(), EVERYTHING) for _ in range(AT_ONCE)]
    for pieces in held:
        await anext(pieces)
    with pytest.raises(LimitReachedError, match="exports are under way"):
        await anext(exports.serve(request(), EVERYTHING))
    await held[0].aclose()
    await anext(exports.serve(request(), EVERYTHING))
    for pieces in held[1:]:
        await pieces.aclose()


async def test_a_refused_export_leaves_its_place(database: Database) -> None:
    exports = Exports(database)
    for _ in range(AT_ONCE + 1):
        with pytest.raises(NotFoundError):
            await anext(exports.serve(request(job_id="nobody"), EVERYTHING))


async def test_who_stops_reading_is_cut_off(database: Database) -> None:
    exports = Exports(database, stall_s=0.1)

    async def read_once() -> None:
        async with aclosing(exports.serve(request(), EVERYTHING)) as pieces:
            async for _ in pieces:
                await asyncio.sleep(30)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(read_once())
    await anext(exports.serve(request(), EVERYTHING))


async def test_a_slow_but_steady_reader_gets_all(database: Database) -> None:
    count = 0
    async with aclosing(Exports(database, stall_s=60).serve(request(), EVERYTHING)) as pieces:
        async for piece in pieces:
            count += len(piece.data)
            await asyncio.sleep(0.01)
    assert count > ITEMS * TEXT_BYTES


async def test_a_closing_service_ends_an_export(tmp_path: Path) -> None:
    opened = Database(open_file(tmp_path / "other.duckdb"))
    made = [event(f"{i:04d}", job(f"{i}", plan("t", 1))) for i in range(3)]
    await opened.write(lambda c: duckdb_store.store_events(c, made))
    wanted = ExportRequest(kind=ExportRequest.KIND_JOBS, format=ExportRequest.FORMAT_CSV)
    pieces = Exports(opened).serve(wanted, EVERYTHING)
    await anext(pieces)
    async with asyncio.timeout(60):
        await opened.close()
        await pieces.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)
