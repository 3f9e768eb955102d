"""Wires what keeps datasets."""

from __future__ import annotations

import asyncio

from services.bus import Bus, Datasets, Room
from services.results import visibility
from services.results.datasets.deleting import Deletions, live_jobs
from services.results.datasets.expiry import Expiry
from services.results.datasets.garbage_collection import Collector, ShardHolds
from services.results.datasets.limits import UploadLimits
from services.results.datasets.servicer import DatasetServicer
from services.results.datasets.uploading import Uploads
from services.results.read_queue.questions import Questions
from services.results.storage.database import Database


class DatasetParts:
    """The datasets of one results service: `reconcile` first, then serve `servicer` while `run` runs."""

    def __init__(
        self,
        connection: Bus,
        store: Datasets,
        database: Database,
        limits: UploadLimits,
        questions: Questions,
        reads: str = visibility.OPEN,
        room: Room | None = None,
    ) -> None:
        holding = ShardHolds()
        self.room = room or Room()
        self.collector = Collector(store, database, holding)
        self.deletions = Deletions(
            store, database, self.collector, lambda dataset_id: live_jobs(connection, dataset_id)
        )
        self.expiry = Expiry(database, self.deletions.delete)
        self.uploads = Uploads(store, database, holding, self.collector, self.expiry, limits)
        self.servicer = DatasetServicer(
            connection, store, database, self.uploads, self.deletions, self.collector, self.room, questions, reads
        )

    async def reconcile(self) -> None:
        """Brings the index to what is stored. Raises UnavailableError without NATS."""
        self.deletions.resume(await self.collector.reconcile())

    async def run(self) -> None:
        """Ends deletions that were cut short, clears up, and deletes what has expired, until cancelled."""
        await asyncio.gather(self.collector.run(), self.deletions.run(), self.expiry.run())
