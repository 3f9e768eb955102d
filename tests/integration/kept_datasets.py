"""The keeping of datasets without the rest of the results service, on a NATS server and a database file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services import bus
from services.bus import contract
from services.results import visibility
from services.results.datasets import index
from services.results.datasets.index import Request
from services.results.datasets.uploading import UploadLimits
from services.results.read_queue import Questions
from services.results.server import DatasetParts
from services.results.storage.database import Database
from services.results.storage.migrations import open_file
from touchstone.v1 import dataset_pb2

STREAM = contract.object_stream(contract.DATASETS)


@dataclass
class Keeper:
    """What one process keeps. `store` and `database` are its own."""

    connection: bus.Bus
    store: bus.Datasets
    database: Database
    datasets: DatasetParts

    async def upload(
        self, content: bytes, request_id: str = "", expires_after_s: int = 0, **options: object
    ) -> dataset_pb2.Dataset:
        asked = dataset_pb2.DatasetOptions(**({"name": "rows.jsonl", "owner": "ann"} | options))  # type: ignore[arg-type]
        async with self.datasets.uploads.place(asked.owner):
            wanted = Request(asked.owner, request_id)
            return await self.datasets.uploads.keep(
                asked, pieces(content), request=wanted, expires_after_s=lambda: expires_after_s
            )

    async def messages(self) -> int:
        """Messages in the object store: none means that nothing is left of anything."""
        return int((await self.connection.js.stream_info(STREAM)).state.messages)

    async def listed(self) -> set[str]:
        return await self.database.read(index.listed)

    async def rows(self, dataset_id: str) -> list[dataset_pb2.DatasetRow]:
        manifest = await self.store.get_manifest(dataset_id)
        assert manifest is not None
        assert not manifest.deleting
        return [row for shard in manifest.shards for row in (await self.store.get_shard(shard.digest)).rows]

    async def cleared(self) -> None:
        async with asyncio.timeout(60):
            await self.datasets.collector.collected()


async def pieces(content: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


def lines(numbers: Iterable[int]) -> bytes:
    return b"".join(json.dumps({"prompt": f"Question {n}?", "reference": n % 7}).encode() + b"\n" for n in numbers)


@asynccontextmanager
async def keeping(
    url: str,
    database: Path,
    store: type[bus.Datasets] = bus.Datasets,
    limits: UploadLimits | None = None,
    most_bytes: int = 0,
    reads: str = visibility.OPEN,
) -> AsyncIterator[Keeper]:
    """As the results service does at its start, until the end of the context."""
    connection = await bus.connect(url, "datasets", timeout_s=10)
    await connection.ensure(64 * 1024 * 1024)
    opened = Database(open_file(database))
    kept = store(connection, most_bytes)
    datasets = DatasetParts(connection, kept, opened, limits or UploadLimits(), Questions(opened), reads)
    await datasets.reconcile()
    running = asyncio.create_task(datasets.run())
    try:
        yield Keeper(connection, kept, opened, datasets)
    finally:
        await bus.end_tasks([running])
        await opened.close()
        await connection.close()
