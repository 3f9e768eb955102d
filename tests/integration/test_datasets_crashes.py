"""A results service killed at any step of an upload or a deletion leaves the dataset whole, or nothing of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kept_datasets import keeping, lines
from tests.nats_server import NatsServer

pytestmark = pytest.mark.stack

HOLDER = Path(__file__).with_name("crashing_datasets.py")
# These two leave the most behind; the others have no time in every run of the tests.
OFTEN = ("within shard 2", "after manifest 1")


def steps(*names: str) -> Sequence[Any]:
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.chaos) for name in names]


async def die(nats: NatsServer, database: Path, work: str, step: str) -> None:
    """Returns when a process has died at the step."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HOLDER),
        nats.url,
        str(database),
        work,
        step,
        cwd=HOLDER.parents[2],
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == -signal.SIGKILL, said.decode()[-2000:]


@pytest.mark.parametrize(
    "step",
    steps("before shard 1", "after shard 1", "within shard 2", "before shard 3", "after shard 3", "before manifest 1"),
)
async def test_nothing_is_left_of_an_upload_killed_before_its_manifest(
    nats: NatsServer, tmp_path: Path, step: str
) -> None:
    database = tmp_path / "results.duckdb"
    async with keeping(nats.url, database) as keeper:
        kept = await keeper.upload(lines(range(1000)))
    await die(nats, database, "upload", step)
    async with keeping(nats.url, database) as keeper:
        await keeper.cleared()
        assert await keeper.listed() == {kept.dataset_id}
        assert len(await keeper.rows(kept.dataset_id)) == 1000
        await keeper.datasets.deletions.delete(kept.dataset_id)
        await keeper.cleared()
        assert await keeper.messages() == 0


@pytest.mark.parametrize("step", steps("after manifest 1", "after listing 1"))
async def test_a_dataset_is_whole_when_killed_after_its_manifest(nats: NatsServer, tmp_path: Path, step: str) -> None:
    database = tmp_path / "results.duckdb"
    await die(nats, database, "upload", step)
    async with keeping(nats.url, database) as keeper:
        await keeper.cleared()
        (dataset_id,) = await keeper.listed()
        rows = await keeper.rows(dataset_id)
        assert [row.messages[0].content for row in rows] == [f"Question {n}?" for n in range(2500)]
        await keeper.datasets.deletions.delete(dataset_id)
        await keeper.cleared()
        assert await keeper.messages() == 0


@pytest.mark.chaos
@pytest.mark.parametrize(
    "step",
    ["after manifest 1", "before delete 1", "after delete 1", "before shards 1", "after shards 1"],
)
async def test_a_deletion_that_was_begun_is_ended_at_the_next_start(
    nats: NatsServer, tmp_path: Path, step: str
) -> None:
    database = tmp_path / "results.duckdb"
    async with keeping(nats.url, database) as keeper:
        goes = await keeper.upload(lines(range(2500)))
        stays = await keeper.upload(lines(range(1000)))
    await die(nats, database, goes.dataset_id, step)
    async with keeping(nats.url, database) as keeper:
        for _ in range(1200):
            if await keeper.listed() == {stays.dataset_id}:
                break
            await asyncio.sleep(0.05)
        await keeper.cleared()
        assert await keeper.store.list() == {stays.dataset_id}
        assert len(await keeper.rows(stays.dataset_id)) == 1000
        assert len(await keeper.store.shards()) == 1, "shared by both, and so kept"


@pytest.mark.chaos
async def test_a_deletion_killed_before_it_began_leaves_the_dataset(nats: NatsServer, tmp_path: Path) -> None:
    database = tmp_path / "results.duckdb"
    async with keeping(nats.url, database) as keeper:
        stays = await keeper.upload(lines(range(2500)))
    await die(nats, database, stays.dataset_id, "before manifest 1")
    async with keeping(nats.url, database) as keeper:
        await keeper.cleared()
        assert await keeper.listed() == {stays.dataset_id}
        assert len(await keeper.rows(stays.dataset_id)) == 2500
