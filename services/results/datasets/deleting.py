"""Deleting a dataset: never while a job uses it, and at one moment. Those that expired are deleted, too.

The manifest is marked first: from then on no job may begin with it. Then all jobs are checked, and no new one can be
missed. Then the manifest is removed, and with it the dataset. A job that was created in between fails in planning.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import nats.errors

from services import bus
from services.bus import Bus, DamagedError, Datasets, heed_cancel
from services.errors import ConflictError, TouchstoneError, UnavailableError
from services.results.datasets import index
from services.results.datasets.garbage_collection import Collector
from services.results.storage.database import Database
from touchstone.v1 import dataset_pb2, job_pb2

log = logging.getLogger(__name__)

LiveJobs = Callable[[str], Awaitable[list[str]]]
_RETRY_S = 2.0
_NAMED = 3


class Deletions:
    """`live_jobs` finds the unfinished jobs over a dataset."""

    def __init__(self, store: Datasets, database: Database, collector: Collector, live_jobs: LiveJobs) -> None:
        self._store = store
        self._database = database
        self._collector = collector
        self._live_jobs = live_jobs
        self._one = asyncio.Lock()
        self._unfinished: asyncio.Queue[str] = asyncio.Queue()

    async def delete(self, dataset_id: str) -> None:
        """Deletes a dataset; its shards are removed soon after. Raises ConflictError while jobs use it, and
        UnavailableError without NATS: then it is deleted, or left unchanged, when NATS is back."""
        async with self._one:
            try:
                jobs = await self._unless_used(dataset_id)
            except BaseException:
                self._unfinished.put_nowait(dataset_id)
                raise
        if jobs:
            raise ConflictError(_used(dataset_id, jobs))
        self._collector.collect()

    def resume(self, dataset_ids: list[str]) -> None:
        """Makes `run` complete deletions that a crash interrupted."""
        for dataset_id in dataset_ids:
            self._unfinished.put_nowait(dataset_id)

    async def run(self) -> None:
        """Completes interrupted deletions, until cancelled."""
        while True:
            heed_cancel()
            dataset_id = await self._unfinished.get()
            try:
                async with self._one:
                    jobs = await self._unless_used(dataset_id)
            except TouchstoneError as error:
                log.warning("dataset %s is deleted later: %s", dataset_id, error)
                self._unfinished.put_nowait(dataset_id)
                heed_cancel()
                await asyncio.sleep(_RETRY_S)
                continue
            log.info("dataset %s %s", dataset_id, "is in use and stays" if jobs else "is deleted")
            self._collector.collect()

    async def _unless_used(self, dataset_id: str) -> list[str]:
        """Deletes it, or returns the jobs that use it and leaves it."""
        try:
            manifest = await self._store.get_manifest(dataset_id)
        except DamagedError as error:
            # It cannot be marked; but no job can begin with it either.
            log.warning("dataset %s: %s", dataset_id, error)
            jobs = await self._live_jobs(dataset_id)
        else:
            jobs = [] if manifest is None else await self._marked(manifest)
        if jobs:
            return jobs
        await self._store.delete(dataset_id)
        now = datetime.now(UTC).replace(tzinfo=None)
        await self._database.write(partial(index.mark_deleted, dataset_id=dataset_id, now=now))
        return []

    async def _marked(self, manifest: dataset_pb2.DatasetManifest) -> list[str]:
        """Prevents jobs from beginning with the dataset, or returns those that use it and leaves it as before."""
        manifest.deleting = True
        await self._store.put_manifest(manifest)
        jobs = await self._live_jobs(manifest.dataset.dataset_id)
        if jobs:
            manifest.deleting = False
            await self._store.put_manifest(manifest)
        return jobs


async def live_jobs(connection: Bus, dataset_id: str) -> list[str]:
    """Ids of the unfinished jobs over a dataset, by the scheduler's records. Raises UnavailableError without NATS."""
    prefix = bus.job_key("")
    found = []
    try:
        async for key, msg in connection.kv_all(bus.JOBS, f"{prefix}*", headers_only=True):
            headers = bus.JobHeaders.decode(msg.headers)
            if headers.dataset == dataset_id and headers.state < job_pb2.Job.STATE_COMPLETED:
                found.append(key.removeprefix(prefix))
    except (nats.errors.Error, OSError) as error:
        raise UnavailableError("NATS does not answer. Try again in a moment.") from error
    return sorted(found)


def _used(dataset_id: str, jobs: list[str]) -> str:
    named = ", ".join(jobs[:_NAMED])
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    which = "a job that is not finished" if len(jobs) == 1 else "jobs that are not finished"
    return f"Dataset {dataset_id} is used by {which}: {named}{more}. Cancel them or wait, then delete it."


_EXPIRED_RETRY_S = 60.0


class Expiry:
    """Knows when each dataset expires: all of them from the start, and each new upload. `delete` is
    Deletions.delete."""

    def __init__(
        self, database: Database, delete: Callable[[str], Awaitable[None]], retry_s: float = _EXPIRED_RETRY_S
    ) -> None:
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
