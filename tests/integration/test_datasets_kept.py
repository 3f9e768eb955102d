"""Datasets in a real store: whole or not at all, shared where they are equal, and never deleted under a job."""

from __future__ import annotations

import asyncio
import gzip
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services import bus
from services.bus import contract
from services.errors import (
    BadLinesError,
    ConflictError,
    DeadlineError,
    InvalidRequestError,
    LimitReachedError,
    UnavailableError,
)
from services.results.datasets.frames import Limits
from services.results.datasets.uploading import UploadLimits
from tests.integration.kept_datasets import STREAM, Keeper, keeping, lines
from tests.nats_server import NatsServer
from tests.waiting import answered
from touchstone.v1 import dataset_pb2, job_pb2

pytestmark = pytest.mark.stack


@pytest.fixture
async def keeper(nats: NatsServer, tmp_path: Path) -> AsyncIterator[Keeper]:
    limits = UploadLimits(Limits(file_bytes=1_000_000, rows=5000), wait_s=0.2)
    async with keeping(nats.url, tmp_path / "results.duckdb", limits=limits, most_bytes=2_000_000) as made:
        yield made


def options(**changes: object) -> dataset_pb2.DatasetOptions:
    return dataset_pb2.DatasetOptions(name="rows.jsonl", owner="ann", **changes)  # type: ignore[arg-type]


async def is_empty(keeper: Keeper) -> bool:
    await keeper.cleared()
    return not await keeper.listed() and not await keeper.messages()


async def test_what_was_uploaded_is_there_in_order(keeper: Keeper) -> None:
    dataset = await keeper.upload(gzip.compress(lines(range(2500))), project_id=7)
    rows = await keeper.rows(dataset.dataset_id)
    assert [row.reference for row in rows] == [str(n % 7) for n in range(2500)]
    assert (dataset.rows, dataset.bytes, dataset.rows_with_reference) == (2500, len(lines(range(2500))), 2500)
    assert (dataset.owner, dataset.name, dataset.project_id) == ("ann", "rows.jsonl", 7)
    manifest = await keeper.store.get_manifest(dataset.dataset_id)
    assert manifest is not None
    assert manifest.dataset == dataset
    assert [shard.rows for shard in manifest.shards] == [1000, 1000, 500]


async def test_one_bad_line_stores_nothing_and_is_named(keeper: Keeper) -> None:
    content = lines(range(2000)) + b"{oops\n" + lines(range(2000, 2500))
    with pytest.raises(BadLinesError, match=r"Line 2,001: ") as refused:
        await keeper.upload(content)
    assert [number for number, _ in refused.value.lines] == [2001]
    assert refused.value.total == 1
    assert await is_empty(keeper)


async def test_a_file_that_is_too_long_is_refused_before_all_of_it_was_read(keeper: Keeper) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield lines(range(taken * 1000, taken * 1000 + 1000))

    with pytest.raises(InvalidRequestError, match="5,000 rows"):
        await keeper.datasets.uploads.keep(options(), endless())
    assert taken < 200
    assert await is_empty(keeper)


async def test_an_upload_whose_client_goes_away_leaves_nothing(keeper: Keeper) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield lines(range(2500))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await keeper.datasets.uploads.keep(options(), broken())
    assert await is_empty(keeper)


async def test_an_upload_that_stops_is_given_up(nats: NatsServer, tmp_path: Path) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield lines(range(2500))
        await asyncio.sleep(60)

    async with keeping(nats.url, tmp_path / "results.duckdb", limits=UploadLimits(idle_s=0.5)) as keeper:
        with pytest.raises(DeadlineError, match="Send the file again"):
            await keeper.datasets.uploads.keep(options(), stuck())
        assert await is_empty(keeper)


async def test_a_cancelled_upload_leaves_nothing(keeper: Keeper) -> None:
    reached = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield lines(range(2500))
        reached.set()
        await asyncio.sleep(60)

    uploading = asyncio.create_task(keeper.datasets.uploads.keep(options(), slow()))
    await reached.wait()
    uploading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    assert await is_empty(keeper)


async def test_an_upload_that_failed_after_its_manifest_was_stored_leaves_nothing(
    nats: NatsServer, tmp_path: Path
) -> None:
    class Unacknowledged(bus.Datasets):
        async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
            await super().put_manifest(manifest)
            raise UnavailableError("the acknowledgement was lost")

    async with keeping(nats.url, tmp_path / "results.duckdb", Unacknowledged) as keeper:
        with pytest.raises(UnavailableError):
            await keeper.upload(lines(range(2500)))
        assert await is_empty(keeper)


async def test_a_damaged_manifest_keeps_no_other_dataset_away(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        damaged = await keeper.upload(lines(range(10)))
        chunks = contract.object_chunks_subject(contract.DATASETS, ">")
        await keeper.connection.js.purge_stream(STREAM, subject=chunks)
        whole = await keeper.upload(lines(range(20)))
        with pytest.raises(bus.DamagedError):
            await keeper.rows(damaged.dataset_id)
    (tmp_path / "results.duckdb").unlink()
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        assert await keeper.listed() == {whole.dataset_id}
        assert len(await keeper.rows(whole.dataset_id)) == 20


async def test_datasets_come_back_with_a_store_that_was_lost_and_restored(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        dataset = await keeper.upload(lines(range(20)))
        manifest = await keeper.store.get_manifest(dataset.dataset_id)
        assert manifest is not None
        shards = [(part.digest, await keeper.store.get_shard(part.digest)) for part in manifest.shards]
        await keeper.connection.js.purge_stream(STREAM)
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        assert await is_empty(keeper)
        for digest, rows in shards:
            await keeper.store.put_shard(digest, rows.SerializeToString())
        await keeper.store.put_manifest(manifest)
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        await keeper.cleared()
        assert await keeper.listed() == {dataset.dataset_id}
        assert len(await keeper.rows(dataset.dataset_id)) == 20


async def test_a_damaged_dataset_can_be_deleted_and_uploaded_again(keeper: Keeper) -> None:
    damaged = await keeper.upload(lines(range(10)))
    await keeper.connection.js.purge_stream(STREAM, subject=contract.object_chunks_subject(contract.DATASETS, ">"))
    await keeper.datasets.deletions.delete(damaged.dataset_id)
    assert await is_empty(keeper)
    again = await keeper.upload(lines(range(10)))
    assert len(await keeper.rows(again.dataset_id)) == 10


async def test_equal_rows_are_stored_once_and_stay_while_one_dataset_has_them(keeper: Keeper) -> None:
    first = await keeper.upload(lines(range(2500)))
    before = await keeper.messages()
    second = await keeper.upload(lines(range(2500)), name="again.jsonl")
    assert first.digest == second.digest
    assert await keeper.messages() < before + 3, "a manifest came, and no shard"
    await keeper.datasets.deletions.delete(first.dataset_id)
    await keeper.cleared()
    assert len(await keeper.rows(second.dataset_id)) == 2500
    await keeper.datasets.deletions.delete(second.dataset_id)
    assert await is_empty(keeper)


async def test_clearing_up_takes_nothing_of_an_upload_under_way(keeper: Keeper) -> None:
    stored, goes_on = asyncio.Event(), asyncio.Event()

    async def halting() -> AsyncIterator[bytes]:
        yield lines(range(2500))
        stored.set()
        await goes_on.wait()
        yield lines(range(2500, 3000))

    twin = await keeper.upload(lines(range(1000)))
    uploading = asyncio.create_task(keeper.datasets.uploads.keep(options(), halting()))
    await stored.wait()
    async with asyncio.timeout(60):
        while len(await keeper.store.shards()) < 2:  # noqa: ASYNC110 - the upload goes on by itself
            await asyncio.sleep(0.01)
    # The first shard is the twin's too, so that deleting it would take the shard from under the upload.
    await keeper.datasets.deletions.delete(twin.dataset_id)
    await keeper.cleared()
    goes_on.set()
    dataset = await uploading
    assert len(await keeper.rows(dataset.dataset_id)) == 3000


async def test_a_third_upload_waits_and_is_then_told_to_come_back(keeper: Keeper) -> None:
    async with keeper.datasets.uploads.place("ann"), keeper.datasets.uploads.place("bob"):
        with pytest.raises(LimitReachedError, match="2 uploads"):
            await keeper.upload(lines(range(10)))
    assert (await keeper.upload(lines(range(10)))).rows == 10


async def test_a_full_store_refuses_an_upload_whole_and_takes_it_after_a_deletion(keeper: Keeper) -> None:
    def large(seed: int) -> bytes:
        return b"".join(b'{"prompt": "%d %s"}\n' % (n, b"%d" % seed * 400) for n in range(1800))

    first = await keeper.upload(large(1))
    await keeper.upload(large(2))
    before = await keeper.messages()
    with pytest.raises(LimitReachedError, match="dataset store is full"):
        await keeper.upload(large(3))
    await keeper.cleared()
    assert await keeper.messages() == before
    await keeper.datasets.deletions.delete(first.dataset_id)
    await keeper.cleared()
    assert (await keeper.upload(large(3))).rows == 1800


async def note_job(keeper: Keeper, dataset_id: str, state: job_pb2.Job.State, job_id: str) -> None:
    """As the scheduler writes it."""
    headers = bus.JobHeaders(state, 1, dataset_id).encode()
    await keeper.connection.js.publish(bus.kv_subject(bus.JOBS, bus.job_key(job_id)), b"record", headers=headers)


async def test_a_dataset_is_not_deleted_while_a_job_uses_it(keeper: Keeper) -> None:
    dataset = await keeper.upload(lines(range(10)))
    other = await keeper.upload(lines(range(20)))
    job_id = str(uuid.uuid4())
    await note_job(keeper, dataset.dataset_id, job_pb2.Job.STATE_RUNNING, job_id)
    with pytest.raises(ConflictError, match=job_id):
        await keeper.datasets.deletions.delete(dataset.dataset_id)
    assert len(await keeper.rows(dataset.dataset_id)) == 10, "and it is no longer marked"
    await keeper.datasets.deletions.delete(other.dataset_id)
    await note_job(keeper, dataset.dataset_id, job_pb2.Job.STATE_FINALIZING, job_id)
    with pytest.raises(ConflictError):
        await keeper.datasets.deletions.delete(dataset.dataset_id)
    await note_job(keeper, dataset.dataset_id, job_pb2.Job.STATE_CANCELLED, job_id)
    await keeper.datasets.deletions.delete(dataset.dataset_id)
    assert await is_empty(keeper)


@pytest.mark.chaos
async def test_a_deletion_cut_short_by_nats_is_ended_when_nats_is_back(keeper: Keeper, nats: NatsServer) -> None:
    dataset = await keeper.upload(lines(range(10)))
    nats.kill()
    deleting = asyncio.create_task(keeper.datasets.deletions.delete(dataset.dataset_id))
    await asyncio.sleep(0.5)
    nats.restart()
    await asyncio.gather(deleting, return_exceptions=True)
    for _ in range(600):
        if not await keeper.listed():
            break
        await asyncio.sleep(0.1)
    assert await is_empty(keeper)


@pytest.mark.chaos
@pytest.mark.parametrize("away_s", [0.3, 14])
async def test_an_upload_cut_short_by_nats_leaves_nothing_or_all_of_it(
    keeper: Keeper, nats: NatsServer, away_s: float
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        for thousand in range(4):
            yield lines(range(thousand * 1000, thousand * 1000 + 1000))
            await asyncio.sleep(0.3)

    uploading = asyncio.create_task(keeper.datasets.uploads.keep(options(), slow()))
    await asyncio.sleep(0.8)
    nats.kill()
    await asyncio.sleep(away_s)
    nats.restart()
    (outcome,) = await asyncio.gather(uploading, return_exceptions=True)
    if isinstance(outcome, dataset_pb2.Dataset):
        assert len(await keeper.rows(outcome.dataset_id)) == 4000
        await keeper.datasets.deletions.delete(outcome.dataset_id)
    else:
        assert isinstance(outcome, UnavailableError)
    async with asyncio.timeout(60):
        await keeper.datasets.collector.collected()
    assert await is_empty(keeper)


async def test_an_upload_that_drips_is_given_up(nats: NatsServer, tmp_path: Path) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    limits = UploadLimits(whole_s=0.5)
    async with keeping(nats.url, tmp_path / "results.duckdb", limits=limits) as keeper:
        with pytest.raises(DeadlineError, match="longer than 0 s"):
            await keeper.datasets.uploads.keep(options(), dripping())
        assert await is_empty(keeper)


def environment_of_reader() -> bytes:
    """Of the child of this process that reads an upload; empty while there is none."""
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        process = Path(f"/proc/{child}")
        if b"services.results.datasets.reading" in (process / "cmdline").read_bytes():
            return (process / "environ").read_bytes()
    return b""


async def test_what_reads_an_upload_is_told_no_secret(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_SERVICE_TOKEN", "secret-of-the-services")
    come = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"prompt": "a"}\n'
        await come.wait()

    asked = dataset_pb2.DatasetOptions(name="rows.jsonl", owner="ann")
    uploading = asyncio.create_task(keeper.datasets.uploads.keep(asked, slowly()))
    environment = b""
    async with asyncio.timeout(60):
        while b"PYTHONPATH" not in environment:
            await asyncio.sleep(0.02)
            environment = environment_of_reader()
    come.set()
    assert (await uploading).rows == 1
    names = {entry.partition(b"=")[0] for entry in environment.split(b"\0") if entry}
    assert names == {b"PYTHONPATH"}


async def test_a_dataset_that_expires_goes_by_itself_and_others_stay(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        stays = await keeper.upload(lines(range(10)))
        goes = await keeper.upload(lines(range(20)), expires_after_s=1)
        later = await keeper.upload(lines(range(30)), expires_after_s=3600)
        assert goes.expires_at.seconds == goes.uploaded_at.seconds + 1
        await answered(keeper.listed, lambda listed: goes.dataset_id not in listed)
        assert await keeper.store.get_manifest(goes.dataset_id) is None
        assert await keeper.listed() == {stays.dataset_id, later.dataset_id}
        assert len(await keeper.rows(later.dataset_id)) == 30


async def test_the_same_request_with_another_expiry_is_refused(keeper: Keeper) -> None:
    made = await keeper.upload(lines(range(10)), "once", expires_after_s=3600)
    assert await keeper.upload(lines(range(10)), "once", expires_after_s=3600) == made
    with pytest.raises(ConflictError, match="once was already used"):
        await keeper.upload(lines(range(10)), "once")
