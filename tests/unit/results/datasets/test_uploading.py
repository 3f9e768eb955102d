"""What an upload that comes again is answered with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from services.bus import Datasets
from services.results.datasets import index
from services.results.datasets.deleting import Expiry
from services.results.datasets.garbage_collection import Collector, ShardHolds
from services.results.datasets.index import Request
from services.results.datasets.uploading import UploadLimits, Uploads
from services.results.storage.database import Connection, Database
from touchstone.v1 import dataset_pb2

ASKED = Request("ann", "request-1", b"rows")


class Store(Datasets):
    """Has nothing."""

    def __init__(self) -> None: ...

    async def delete(self, dataset_id: str) -> None: ...

    async def shards(self) -> set[str]:
        return set()

    async def drop_strays(self) -> int:
        return 0


class SlowReads(Database):
    """Gives what a read has found once `pause` is over."""

    pause = 0.0

    async def read(self, ask: Callable[[Connection], Any], *, waits: bool = True) -> Any:
        found = await super().read(ask, waits=waits)
        await asyncio.sleep(self.pause)
        return found


@pytest.mark.parametrize("given_up", [False, True])
async def test_a_dataset_that_goes_while_it_is_looked_up_is_no_answer(connection: Connection, given_up: bool) -> None:
    database = SlowReads(connection)
    collector = Collector(Store(), database, ShardHolds())
    expiry = Expiry(database, Store().delete)
    uploads = Uploads(Store(), database, ShardHolds(), collector, expiry, UploadLimits())
    manifest = dataset_pb2.DatasetManifest(request_id=ASKED.request_id, asked=ASKED.asked)
    manifest.dataset.dataset_id, manifest.dataset.owner = "ds_1", ASKED.owner
    manifest.dataset.uploaded_at.GetCurrentTime()
    index.add(connection, manifest, manifest.dataset.uploaded_at.ToDatetime())
    if given_up:
        collector.give_up("ds_1")
    database.pause = 0.1
    collecting = asyncio.create_task(collector.run())
    made = await uploads.made_by(ASKED)
    assert made == (None if given_up else manifest.dataset)
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    await database.close()
