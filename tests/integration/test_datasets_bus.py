"""Datasets in a real NATS object store: what is written is read, what is removed leaves nothing."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Collection
from hashlib import sha256
from typing import Any

import nats.errors
import pytest

from services import bus
from services.bus import contract
from services.errors import LimitReachedError, NotFoundError, UnavailableError
from tests.nats_server import NatsServer
from touchstone.v1 import dataset_pb2

STREAM = contract.object_stream(contract.DATASETS)


@pytest.fixture
async def connection(nats: NatsServer) -> AsyncIterator[bus.Bus]:
    connected = await bus.connect(nats.url, "test", timeout_s=10)
    await connected.ensure(64 * 1024 * 1024)
    yield connected
    await connected.close()


@pytest.fixture
def datasets(connection: bus.Bus) -> bus.Datasets:
    return bus.Datasets(connection)


def shard(seed: int, size: int = 100) -> tuple[str, bytes]:
    text = random.Random(seed).randbytes(size // 2).hex()
    message = dataset_pb2.ChatMessage(role="user", content=text)
    data = dataset_pb2.ShardRows(
        rows=[dataset_pb2.DatasetRow(custom_id="row-1", messages=[message])]
    ).SerializeToString()
    return sha256(data).hexdigest(), data


def manifest(*digests: str) -> dataset_pb2.DatasetManifest:
    return dataset_pb2.DatasetManifest(
        dataset=dataset_pb2.Dataset(dataset_id=f"ds_{uuid.uuid4().hex}", name="rows.jsonl"),
        shards=[dataset_pb2.Shard(digest=digest, rows=1) for digest in digests],
    )


async def all_of_them(digests: Collection[str]) -> Collection[str]:
    return digests


async def messages(connection: bus.Bus) -> int:
    return int((await connection.js.stream_info(STREAM)).state.messages)


async def test_what_is_stored_is_read_whole(datasets: bus.Datasets) -> None:
    digest, data = shard(1, 3_900_000)
    await datasets.put_shard(digest, data)
    made = manifest(digest)
    await datasets.put_manifest(made)
    assert (await datasets.get_shard(digest)).SerializeToString() == data
    assert await datasets.get_manifest(made.dataset.dataset_id) == made
    assert await datasets.list() == {made.dataset.dataset_id}
    assert await datasets.shards() == {digest}


async def test_a_shard_is_stored_once(datasets: bus.Datasets, connection: bus.Bus) -> None:
    digest, data = shard(1)
    await datasets.put_shard(digest, data)
    before = (await connection.js.stream_info(STREAM)).state.last_seq
    await datasets.put_shard(digest, data)
    assert (await connection.js.stream_info(STREAM)).state.last_seq == before


async def test_what_is_not_there_is_none(datasets: bus.Datasets) -> None:
    for dataset_id in (f"ds_{'0' * 32}", "", "ds_x", "../manifest", "ds_" + "a" * 100_000, "ds_*", "ds_" + "A" * 32):
        assert await datasets.get_manifest(dataset_id) is None
    with pytest.raises(NotFoundError, match="deleted"):
        await datasets.get_shard("0" * 64)


async def test_what_is_removed_leaves_no_message_behind(datasets: bus.Datasets, connection: bus.Bus) -> None:
    digest, data = shard(1, 2_000_000)
    await datasets.put_shard(digest, data)
    made = manifest(digest)
    await datasets.put_manifest(made)
    made.deleting = True
    await datasets.put_manifest(made)
    found = await datasets.get_manifest(made.dataset.dataset_id)
    assert found is not None
    assert found.deleting
    await datasets.delete(made.dataset.dataset_id)
    await datasets.delete(made.dataset.dataset_id)
    assert await datasets.get_manifest(made.dataset.dataset_id) is None
    assert await datasets.delete_shards([digest], all_of_them) == 1
    assert await messages(connection) == 0


async def test_a_reader_sees_the_old_or_the_new_manifest_while_it_is_replaced(datasets: bus.Datasets) -> None:
    made = manifest(*(f"{number:064x}" for number in range(20_000)))
    await datasets.put_manifest(made)

    async def replace() -> None:
        for round_ in range(10):
            made.deleting = round_ % 2 == 0
            await datasets.put_manifest(made)

    replacing = asyncio.create_task(replace())
    while not replacing.done():
        found = await datasets.get_manifest(made.dataset.dataset_id)
        assert found is not None
        assert len(found.shards) == 20_000
    await replacing


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_write_whose_answer_is_lost_leaves_a_whole_manifest(
    datasets: bus.Datasets, connection: bus.Bus, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    made = manifest()
    await datasets.put_manifest(made)
    publish = connection.js.publish

    async def without_answer(subject: str, *args: Any, **named: Any) -> Any:
        if not subject.startswith(contract.object_meta_subject(contract.DATASETS, "")):
            return await publish(subject, *args, **named)
        if is_stored:
            await publish(subject, *args, **named)
        raise nats.errors.TimeoutError

    made.deleting = True
    with monkeypatch.context() as patches:
        patches.setattr(connection.js, "publish", without_answer)
        with pytest.raises(UnavailableError):
            await datasets.put_manifest(made)
    found = await datasets.get_manifest(made.dataset.dataset_id)
    assert found is not None
    assert found.deleting is is_stored
    assert await datasets.drop_strays() == 1
    assert await datasets.get_manifest(made.dataset.dataset_id) == found


async def test_pieces_that_a_crash_left_are_dropped_and_whole_objects_stay(
    datasets: bus.Datasets, connection: bus.Bus
) -> None:
    digest, data = shard(1, 1_500_000)
    await datasets.put_shard(digest, data)
    for number in range(3):
        await connection.js.publish(contract.object_chunks_subject(contract.DATASETS, f"stray{number}"), b"x" * 1000)
    assert await datasets.drop_strays() == 3
    assert await datasets.drop_strays() == 0
    assert (await datasets.get_shard(digest)).SerializeToString() == data


async def test_a_full_store_says_so_and_still_deletes(connection: bus.Bus) -> None:
    datasets = bus.Datasets(connection, max_bytes=1_000_000)
    kept, refused = shard(1, 800_000), shard(2, 400_000)
    await datasets.put_shard(*kept)
    with pytest.raises(LimitReachedError, match=r"full.*TOUCHSTONE_DATASETS_MAX_BYTES"):
        await datasets.put_shard(*refused)
    made = manifest(kept[0])
    await datasets.put_manifest(made)
    made.deleting = True
    await datasets.put_manifest(made)
    await datasets.delete(made.dataset.dataset_id)
    await datasets.delete_shards([kept[0]], all_of_them)
    await datasets.put_shard(*refused)
    assert await datasets.shards() == {refused[0]}
