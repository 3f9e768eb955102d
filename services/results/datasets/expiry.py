"""Deletes datasets that have expired. One that a job uses stays until the job has ended."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

from services.bus import heed_cancel
from services.errors import TouchstoneError
from services.results.datasets import index
from services.results.storage.database import Database
from touchstone.v1 import dataset_pb2

log = logging.getLogger(__name__)

_RETRY_S = 60.0


class Expiry:
    """Knows when each dataset expires: all of them at the start, and each one that is uploaded. `delete` is
    Deletions.delete."""

    def __init__(self, database: Database, delete: Callable[[str], Awaitable[None]], retry_s: float = _RETRY_S) -> None:
        self._database = database
        self._delete = delete
        self._retry_s = retry_s
        self._times: list[tuple[float, str]] = []
        self._noted = asyncio.Event()

    def note(self, dataset: dataset_pb2.Dataset) -> None:
        """A dataset that is listed now."""
        if dataset.HasField("expires_at"):
            heapq.heappush(self._times, (float(dataset.expires_at.seconds), dataset.dataset_id))
            self._noted.set()

    async def run(self) -> None:
        """Until cancelled."""
        for dataset in await self._database.read(index.expiring):
            self.note(dataset)
        while True:
            self._noted.clear()
            wait_s = self._times[0][0] - _now() if self._times else None
            if wait_s is None or wait_s > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._noted.wait()
                heed_cancel()
                continue
            _, dataset_id = heapq.heappop(self._times)
            try:
                await self._delete(dataset_id)
                log.info("dataset %s has expired", dataset_id)
            except TouchstoneError as error:
                log.info("dataset %s has expired and is deleted later: %s", dataset_id, error)
                heapq.heappush(self._times, (_now() + self._retry_s, dataset_id))
            heed_cancel()


def _now() -> float:
    return datetime.now(UTC).timestamp()
