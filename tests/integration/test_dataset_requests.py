"""A request id makes one dataset, however often its upload comes, for a day and over restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services import bus
from services.errors import ConflictError, UnavailableError
from tests.integration.kept_datasets import Keeper, keeping, lines
from tests.integration.test_datasets_crashes import die
from tests.nats_server import NatsServer
from touchstone.v1 import dataset_pb2

pytestmark = pytest.mark.stack

ROWS = lines(range(50))


async def test_the_same_upload_again_is_the_same_dataset_also_after_a_restart(nats: NatsServer, tmp_path: Path) -> None:
    database = tmp_path / "results.duckdb"
    async with keeping(nats.url, database) as keeper:
        first = await keeper.upload(ROWS, "r1")
        assert await keeper.upload(ROWS, "r1") == first
    async with keeping(nats.url, database) as keeper:
        assert await keeper.upload(ROWS, "r1") == first
        await keeper.cleared()
        assert await keeper.listed() == {first.dataset_id}
        assert len(await keeper.rows(first.dataset_id)) == 50
    # The index is made anew from the manifests.
    database.unlink()
    async with keeping(nats.url, database) as keeper:
        assert await keeper.upload(ROWS, "r1") == first


async def test_uploads_of_one_request_at_once_make_one_dataset(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        made = await asyncio.gather(*(keeper.upload(ROWS, "r1") for _ in range(3)))
        assert len({dataset.dataset_id for dataset in made}) == 1
        await keeper.cleared()
        assert await keeper.listed() == {made[0].dataset_id}
        assert len(await keeper.rows(made[0].dataset_id)) == 50


async def test_a_request_id_is_one_uploads_and_one_users(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        first = await keeper.upload(ROWS, "r1")
        with pytest.raises(ConflictError, match=f"request_id r1 was already used for dataset {first.dataset_id}"):
            await keeper.upload(lines(range(51)), "r1")
        with pytest.raises(ConflictError):
            await keeper.upload(ROWS, "r1", name="other.jsonl")
        others = [
            await keeper.upload(ROWS, "r1", owner="bob"),
            await keeper.upload(ROWS, "r2"),
            await keeper.upload(ROWS),
            await keeper.upload(ROWS),
        ]
        assert len({first.dataset_id, *(dataset.dataset_id for dataset in others)}) == 5
        await keeper.cleared()
        assert len(await keeper.listed()) == 5


async def test_what_is_deleted_or_a_day_old_is_made_anew(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        first = await keeper.upload(ROWS, "r1")
        await keeper.datasets.deletions.delete(first.dataset_id)
        second = await keeper.upload(ROWS, "r1")
        assert second.dataset_id != first.dataset_id
        assert await keeper.upload(ROWS, "r1") == second
        await keeper.database.write(
            lambda c: c.execute("UPDATE dataset_requests SET made_at = made_at - INTERVAL 25 HOUR")
        )
        third = await keeper.upload(ROWS, "r1")
        assert third.dataset_id != second.dataset_id
        assert await keeper.upload(ROWS, "r1") == third
        counted = await keeper.database.read(lambda c: c.execute("SELECT count(*) FROM dataset_requests").fetchone())
        assert counted == (1,)


async def test_an_upload_whose_answer_was_lost_in_a_crash_is_found_again(nats: NatsServer, tmp_path: Path) -> None:
    database = tmp_path / "results.duckdb"
    await die(nats, database, "upload", "after manifest 1")
    async with keeping(nats.url, database) as keeper:
        (dataset_id,) = await keeper.listed()
        again = await keeper.upload(lines(range(2500)), "crashing")
        assert again.dataset_id == dataset_id
        await keeper.cleared()
        assert await keeper.listed() == {dataset_id}


async def test_an_upload_that_came_to_nothing_is_no_answer(nats: NatsServer, tmp_path: Path) -> None:
    async with keeping(nats.url, tmp_path / "results.duckdb") as keeper:
        first = await keeper.upload(ROWS, "r1")
        keeper.datasets.collector.give_up(first.dataset_id)
        second = await keeper.upload(ROWS, "r1")
        assert second.dataset_id != first.dataset_id
        await keeper.cleared()
        assert await keeper.listed() == {second.dataset_id}


class LostAnswers(bus.Datasets):
    """Stores the first manifests without knowing it, and can remove nothing."""

    lost = 2

    async def put_manifest(self, manifest: dataset_pb2.DatasetManifest) -> None:
        await super().put_manifest(manifest)
        if self.lost:
            self.lost -= 1
            raise UnavailableError("no answer")

    async def delete(self, dataset_id: str) -> None:
        raise UnavailableError("no answer")


@pytest.mark.parametrize("index_is_lost", [False, True])
async def test_failed_uploads_of_a_request_are_not_found_after_a_crash(
    nats: NatsServer, tmp_path: Path, index_is_lost: bool
) -> None:
    database = tmp_path / "results.duckdb"
    async with keeping(nats.url, database, LostAnswers) as keeper:
        other = await _failing(keeper, "r2")
        with pytest.raises(UnavailableError):
            await keeper.upload(ROWS, "r1")
        made = await keeper.upload(ROWS, "r1")
        assert len(await keeper.store.list()) == 3
    if index_is_lost:
        database.unlink()
    async with keeping(nats.url, database) as keeper:
        await keeper.cleared()
        # Nobody has repeated the other one: it may be what a client still asks for.
        assert await keeper.listed() == await keeper.store.list() == {made.dataset_id, other}
        assert await keeper.upload(ROWS, "r1") == made


async def _failing(keeper: Keeper, request_id: str) -> str:
    """The dataset of an upload whose answer is lost."""
    with pytest.raises(UnavailableError):
        await keeper.upload(ROWS, request_id)
    (dataset_id,) = await keeper.store.list()
    return dataset_id
