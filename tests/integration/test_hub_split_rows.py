"""A split of an evaluator's mirror, over NATS and through the reading process, as rows of a dataset."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services import bus
from services.bus import contract
from services.errors import BadLinesError, InvalidRequestError, NotFoundError
from services.evaluator.hub_import.splits import SplitReader
from services.results.datasets import child
from services.results.datasets.frames import Limits, Shard
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions, DatasetRow, ShardRows
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import DataSource

ROWS = 2500
TEMPLATE = "{{question}}\nA) {{options.A}}\nB) {{options.B}}"
SCORING = Scoring(scorer="choice", reference_field="answer")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "ours/lamps/default"
    folder.mkdir(parents=True)
    rows = (
        {"question": f"Lamp {n}? " + "é" * 300, "options": {"A": "on", "B": "off"}, "answer": "AB"[n % 2]}
        for n in range(ROWS)
    )
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@asynccontextmanager
async def asking(nats: NatsServer, mirror: Path) -> AsyncIterator[bus.Bus]:
    """A connection, while an evaluator with the mirror serves splits on another."""
    asked = await bus.connect(nats.url, "results", timeout_s=10)
    evaluator = await bus.connect(nats.url, "evaluator", timeout_s=10)
    serving = asyncio.create_task(bus.serve_splits(evaluator, SplitReader(mirror).open))
    await until(lambda: nats.hears(contract.SPLITS))
    try:
        yield asked
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        await evaluator.close()
        await asked.close()


async def taken(
    connection: bus.Bus, template: str, *, split: str = "test", limit: int = 0
) -> tuple[Dataset, list[DatasetRow]]:
    source = DataSource(dataset="ours/lamps", split=split)
    options = DatasetOptions(name="lamps", format=Dataset.FORMAT_HUB, template=template, scoring=SCORING)
    async with bus.read_split(connection, CreateHubDatasetRequest(source=source, limit=limit)) as opened:
        parts = [part async for part in child.read(options, opened.pieces, Limits(), 30)]
    dataset = parts.pop()
    assert isinstance(dataset, Dataset)
    shards = [part for part in parts if isinstance(part, Shard)]
    return dataset, [row for shard in shards for row in ShardRows.FromString(shard.data).rows]


async def test_a_split_becomes_rows_with_references(nats: NatsServer, mirror: Path) -> None:
    async with asking(nats, mirror) as connection:
        dataset, rows = await taken(connection, TEMPLATE)
        short, _ = await taken(connection, TEMPLATE, limit=7)

    assert (dataset.rows, dataset.rows_with_reference, short.rows) == (ROWS, ROWS, 7)
    assert [row.reference for row in rows[:3]] == ['"A"', '"B"', '"A"']
    assert rows[-1].messages[0].content == f"Lamp {ROWS - 1}? " + "é" * 300 + "\nA) on\nB) off"


async def test_a_split_that_cannot_be_used_says_why(nats: NatsServer, mirror: Path) -> None:
    async with asking(nats, mirror) as connection:
        with pytest.raises(BadLinesError, match=f"{ROWS:,} lines are wrong in lamps"):
            await taken(connection, "{{quesstion}}")
        with pytest.raises(InvalidRequestError, match="inserts nothing"):
            await taken(connection, "What?")
        with pytest.raises(NotFoundError, match="no default with a split train"):
            await taken(connection, TEMPLATE, split="train")
