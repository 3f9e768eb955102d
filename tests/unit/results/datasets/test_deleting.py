"""Datasets that expire: the ones known at the start, new ones, and ones in use at that time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services import bus
from services.errors import ConflictError
from services.results.datasets import index
from services.results.datasets.deleting import Expiry
from services.results.storage.database import Connection, Database
from tests.waiting import until
from touchstone.v1 import dataset_pb2


def dataset(name: str, expires_in_s: float | None) -> dataset_pb2.Dataset:
    made = dataset_pb2.Dataset(dataset_id=name, name=name, owner="ann", digest="00", rows=1)
    made.uploaded_at.GetCurrentTime()
    if expires_in_s is not None:
        made.expires_at.FromSeconds(int(time.time() + expires_in_s))
    return made


def stored(connection: Connection, *datasets: dataset_pb2.Dataset) -> None:
    for one in datasets:
        index.add(connection, dataset_pb2.DatasetManifest(dataset=one), one.uploaded_at.ToDatetime())


class Deleting:
    """Refuses the first tries for datasets in use."""

    def __init__(self, in_use: dict[str, int] | None = None) -> None:
        self.in_use = in_use or {}
        self.deleted: list[str] = []

    async def delete(self, dataset_id: str) -> None:
        if self.in_use.get(dataset_id):
            self.in_use[dataset_id] -= 1
            raise ConflictError("A job uses it.")
        self.deleted.append(dataset_id)

    async def until(self, count: int) -> list[str]:
        await until(lambda: len(self.deleted) >= count)
        return self.deleted


@asynccontextmanager
async def running(expiry: Expiry) -> AsyncIterator[None]:
    task = asyncio.create_task(expiry.run())
    try:
        yield
    finally:
        await bus.end_tasks([task])


async def test_what_expired_while_nothing_ran_is_deleted_at_the_start_earliest_first(connection: Connection) -> None:
    stored(connection, dataset("b", -10), dataset("never", None), dataset("a", -20), dataset("later", 3600))
    deleting = Deleting()
    async with running(Expiry(Database(connection), deleting.delete)):
        assert await deleting.until(2) == ["a", "b"]
        await asyncio.sleep(0.05)
    assert deleting.deleted == ["a", "b"]


async def test_a_new_dataset_that_expires_before_the_others_does_not_wait_for_them(connection: Connection) -> None:
    stored(connection, dataset("later", 3600))
    deleting = Deleting()
    expiry = Expiry(Database(connection), deleting.delete)
    async with running(expiry):
        await asyncio.sleep(0.05)
        expiry.note(dataset("new", 0))
        assert await deleting.until(1) == ["new"]


async def test_one_in_use_is_tried_again_and_keeps_no_other_waiting(connection: Connection) -> None:
    stored(connection, dataset("used", -20), dataset("free", -10))
    deleting = Deleting({"used": 2})
    async with running(Expiry(Database(connection), deleting.delete, retry_s=0.02)):
        assert await deleting.until(2) == ["free", "used"]
