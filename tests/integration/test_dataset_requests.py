"""A request id makes one dataset, however often its upload comes, for a day and over restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.errors import ConflictError
from tests.integration.kept_datasets import keeping, lines
from tests.integration.test_datasets_crashes import die
from tests.nats_server import NatsServer

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
        with pytest.raises(ConflictError, match=f"request_id r1 has made dataset {first.dataset_id}"):
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
