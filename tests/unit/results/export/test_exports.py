"""Exports: which rows, which columns, the same values in every format."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from services.errors import InvalidRequestError, LimitReachedError, NotFoundError
from services.results.export.exports import AT_ONCE, Exports, export
from services.results.export.item_rows import COLUMNS_OF_ITEMS
from services.results.export.job_rows import COLUMNS_OF_JOBS, RECEIPT, WHO
from services.results.export.metric_rows import COLUMNS_OF_METRICS
from services.results.intake import writes
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import answer, batch, event, job, plan, run
from tests.unit.results.export.files import CSV, JSON, JSONL, PARQUET, items_of, metrics_of, rows, text_items, whole
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ExportRequest
from touchstone.v1.results_service_pb2 import ExportRequest as Ask

ITEMS = 400
TEXT_BYTES = 50_000


def test_every_format_has_the_same_columns_and_values(connection: Connection) -> None:
    text_items(connection)
    request = items_of("j")
    lines = rows(connection, request)
    request.format = JSON
    assert json.loads(whole(connection, request)) == lines
    request.format = PARQUET
    table = pq.read_table(io.BytesIO(whole(connection, request)))
    assert table.column_names == list(lines[0])
    for found, line in zip(table.to_pylist(), lines, strict=True):
        for name in ("statistics", "continuations"):
            found[name] = json.loads(found[name]) if found[name] is not None else None
        assert found == line
    request.format = CSV
    data = whole(connection, request).decode()
    head, *body = csv.reader(io.StringIO(data, newline=""))
    assert head == list(lines[0])
    for cells, line in zip(body, lines, strict=True):
        assert [_plain(cell) for cell in cells] == [_cell(value) for value in line.values()]


def _plain(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@", "\t", "\r") else cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def test_without_rows_a_file_is_still_whole(connection: Connection) -> None:
    request = Ask(kind=Ask.KIND_JOBS, format=CSV)
    assert whole(connection, request).startswith(b"job_id,status,")
    request.format = JSON
    assert json.loads(whole(connection, request)) == []
    request.format = PARQUET
    assert pq.read_table(io.BytesIO(whole(connection, request))).num_rows == 0
    request.format = JSONL
    assert whole(connection, request) == b""


def test_jobs_and_metrics_are_chosen_as_by_the_list_of_jobs(connection: Connection) -> None:
    for minute, (name, suite) in enumerate((("a", "glue"), ("b", "mmlu"), ("c", "glue"))):
        run(connection, job(name, plan("t", 4), suite=suite, owner=f"user {name}", minute=minute), 3, 1, minute=minute)
    chosen = pb.ResultsServiceListJobsRequest(suite="glue", page_size=1)
    assert [r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_JOBS, jobs=chosen))] == ["c", "a"]
    found = rows(connection, Ask(kind=Ask.KIND_METRICS, jobs=chosen))
    assert [(r["job_id"], r["task"], r["metric"]) for r in found if r["job_id"] == "a"] == [
        ("a", "t", "accuracy"),
        ("a", "", "score"),
        ("a", "", "accuracy"),
    ]
    own = Visibility("user a")
    assert [r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_JOBS), own)] == ["a"]
    assert {r["job_id"] for r in rows(connection, Ask(kind=Ask.KIND_METRICS), own)} == {"a"}


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Ask(kind=Ask.KIND_JOBS), "format"),
        (Ask(format=CSV), "kind"),
        (Ask(kind=Ask.KIND_JOBS, format=9), "format"),  # type: ignore[arg-type]
        (Ask(kind=Ask.KIND_METRICS, format=CSV, items=pb.ListItemsRequest(job_id="j", task="t")), "items"),
    ],
)
def test_a_wrong_request_is_refused(connection: Connection, request_: Ask, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        list(export(connection, request_))
    assert refused.value.field == field


def test_items_and_metrics_of_unknown_and_hidden_jobs_are_not_found(connection: Connection) -> None:
    text_items(connection)
    for request in (items_of("nobody"), metrics_of("nobody"), items_of("j"), metrics_of("j")):
        request.format = CSV
        with pytest.raises(NotFoundError):
            list(export(connection, request, Visibility("bob")))


def test_every_column_is_documented_and_no_other() -> None:
    text = (
        (Path(__file__).parents[4] / "docs/api.md")
        .read_text(encoding="utf-8")
        .partition("### Exports")[2]
        .partition("\n### ")[0]
    )
    whose = {
        "jobs": [column.name for column in COLUMNS_OF_JOBS],
        "metrics": [column.name for column in COLUMNS_OF_METRICS],
        "items": [column.name for column in COLUMNS_OF_ITEMS],
    }
    around = next(line for line in text.splitlines() if line.startswith("Rows of jobs and of metrics"))
    shared = re.findall(r"`(\w+)`", around)[: len(WHO) + len(RECEIPT)]
    for kind, columns in whose.items():
        listed = next(line for line in text.splitlines() if line.startswith(f"| `{kind}` |")).split(" | ")[2]
        own = re.findall(r"`(\w+)`", listed.partition(". ")[0])
        first, last = ([], []) if kind == "items" else (shared[: len(WHO)], shared[len(WHO) :])
        assert columns == [*first, *own, *last]


@pytest.fixture
async def database(new_path: Path) -> AsyncIterator[Database]:
    """Job "j" with 20 MB of answers."""
    opened = Database(open_file(new_path))

    def fill(connection: Connection) -> None:
        writes.store_events(connection, [event("0001", job("j", plan("t", ITEMS)))])
        for start in range(0, ITEMS, 50):
            made = [answer(i, response=f"{i:05d}" * (TEXT_BYTES // 5)) for i in range(start, start + 50)]
            writes.store_items(connection, [batch("j", "t", made)])

    await opened.write(fill)
    yield opened
    await opened.close()


def request(format_: ExportRequest.Format = ExportRequest.FORMAT_JSONL, job_id: str = "j") -> ExportRequest:
    return ExportRequest(kind=ExportRequest.KIND_ITEMS, format=format_, items=pb.ListItemsRequest(job_id=job_id))


async def test_an_export_is_one_snapshot_and_keeps_no_writer_waiting(database: Database) -> None:
    async with aclosing(Exports(database).serve(request(), EVERYTHING)) as pieces:
        data = (await anext(pieces)).data

        def change(connection: Connection) -> None:
            writes.store_items(connection, [batch("j", "t", [answer(ITEMS)])])
            connection.execute("UPDATE items SET response = 'changed' WHERE job_id = 'j'")

        async with asyncio.timeout(60):
            await database.write(change)
            assert len(await database.read(lambda c: c.execute("SELECT 1 FROM items").fetchall())) == ITEMS + 1
        async for piece in pieces:
            data += piece.data
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["item"] for line in lines] == list(range(ITEMS))
    assert all(len(line["response"]) == TEXT_BYTES for line in lines)


@pytest.mark.stack
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
    with pytest.raises(LimitReachedError, match="exports are running, the most allowed"):
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
    await opened.write(lambda c: writes.store_events(c, made))
    wanted = ExportRequest(kind=ExportRequest.KIND_JOBS, format=ExportRequest.FORMAT_CSV)
    pieces = Exports(opened).serve(wanted, EVERYTHING)
    await anext(pieces)
    async with asyncio.timeout(60):
        await opened.close()
        await pieces.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)
