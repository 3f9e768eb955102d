"""Shards of a dataset, read once and kept within bounds."""

from __future__ import annotations

import asyncio

import pytest

from services.bus import DamagedError
from services.evaluator.data.reader import DataError
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.datasets.store import DatasetGoneError, Shelf
from tests.dataset_store import DATASET_ID, MemoryStore, row
from tests.unit.evaluator.datasets.tasks import NOTHING, opened
from touchstone.v1.dataset_pb2 import DatasetManifest, ShardRows
from touchstone.v1.job_pb2 import DatasetWork


async def test_a_shard_is_read_once_however_many_need_it_at_a_time() -> None:
    memory = MemoryStore()
    memory.add([row(n) for n in range(40)], shard_rows=10)
    task = opened(memory)
    await asyncio.gather(*(task.items(range(start, start + 5), NOTHING) for start in range(0, 40, 5)))
    assert len(memory.read) == 4


async def test_units_touch_only_the_shards_that_their_rows_are_in() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(n) for n in range(40)], shard_rows=10)
    task = opened(memory)
    await task.items(range(8, 12), NOTHING)
    assert memory.read == [shard.digest for shard in manifest.shards[:2]]


async def test_kept_shards_stay_within_their_bytes() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(n, "x" * 1000) for n in range(100)], shard_rows=10)
    shelf = Shelf(memory, most_bytes=3 * max(shard.bytes for shard in manifest.shards))
    for shard in [*manifest.shards, *manifest.shards[-3:]]:
        await shelf.rows(shard)
    assert len(memory.read) == 10
    await shelf.rows(manifest.shards[0])
    assert len(memory.read) == 11


async def test_a_silent_store_is_waited_for() -> None:
    memory = MemoryStore()
    memory.add([row(1)])
    memory.silent = 3
    assert (await Shelf(memory, pause_s=0.01).manifest(DATASET_ID, "")).dataset.rows == 1


async def test_a_damaged_shard_is_told_and_not_waited_for() -> None:
    class Damaged(MemoryStore):
        async def get_shard(self, digest: str) -> ShardRows:
            raise DamagedError("The dataset cannot be read whole.")

    memory = Damaged()
    shard = memory.add([row(1)]).shards[0]
    with pytest.raises(DataError, match="read whole"):
        async with asyncio.timeout(60):
            await Shelf(memory, pause_s=0.01).rows(shard)


async def test_a_deleted_dataset_is_told_by_name() -> None:
    memory = MemoryStore()
    datasets = OpenDatasets(memory)
    work = DatasetWork(dataset_id=DATASET_ID, name="questions.jsonl")
    sentence = (
        "Dataset questions.jsonl was deleted, so its rows cannot be run. Upload the file again and start a new job."
    )
    for ask in (datasets.open, datasets.task):
        with pytest.raises(DatasetGoneError) as gone:
            await ask(work)
        assert gone.value.message == sentence
    manifest = memory.add([row(1)])
    task = await datasets.open(work)
    del memory.manifests[DATASET_ID]
    memory.shards.clear()
    with pytest.raises(DatasetGoneError, match="was deleted"):
        await task.items([0], NOTHING)
    assert manifest.dataset.rows == 1


async def test_a_dataset_that_is_marked_is_gone_once_its_manifest_is() -> None:
    memory = MemoryStore()
    manifest = memory.add([row(1)])
    shelf = Shelf(memory, pause_s=0.01)

    async def marked_for(seconds: float) -> asyncio.Task[DatasetManifest]:
        manifest.deleting = True
        waiting = asyncio.create_task(shelf.manifest(DATASET_ID, ""))
        await asyncio.sleep(seconds)
        assert not waiting.done()
        return waiting

    # As long as a deletion takes that NATS or a crash interrupts.
    refused = await marked_for(0.3)
    manifest.deleting = False
    assert (await refused).dataset.rows == 1
    deleted = await marked_for(0.03)
    del memory.manifests[DATASET_ID]
    with pytest.raises(DatasetGoneError):
        await deleted
