"""The newest state of one job, kept up to date while somebody looks at it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from services import rpc
from services.errors import NotFoundError, TouchstoneError
from services.gateway.access.limits import Streams
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2

RECONNECT_S = 1.0


class Feed:
    """`job` is its newest state, `seen` when it came; `silent` says that the scheduler does not answer. Use
    `following`."""

    def __init__(self, backend: Backend, job: job_pb2.Job, caller: rpc.Identity) -> None:
        self._backend = backend
        self._caller = caller
        self.job = job
        self.seen = datetime.now(UTC)
        self.silent = False
        self.changed = asyncio.Event()

    async def follow(self) -> None:
        """Watches until the job is finished; a scheduler that goes away is waited for, for ever."""
        while not is_finished(self.job):
            try:
                async for job in self._backend.watch(self.job.job_id, self._caller):
                    self._take(job)
                # A stream that ends before the job does comes from a scheduler that shuts down.
            except NotFoundError:
                with contextlib.suppress(TouchstoneError):
                    self._take(await jobs.find(self._backend, self.job.job_id, self._caller))
            except TouchstoneError:
                self.silent = True
                self.changed.set()
            if not is_finished(self.job):
                await asyncio.sleep(RECONNECT_S)

    def _take(self, job: job_pb2.Job) -> None:
        self.job, self.seen, self.silent = job, datetime.now(UTC), False
        self.changed.set()

    async def wait(self, streams: Streams, most: float, pause: float = 0) -> bool:
        """Waits `pause`, then for a change, but for `most` seconds only. False when nothing changed."""
        stopping = asyncio.create_task(streams.stopping.wait())
        changing = asyncio.create_task(self.changed.wait())
        try:
            done, _ = await asyncio.wait((stopping,), timeout=pause)
            if not done:
                done, _ = await asyncio.wait((stopping, changing), timeout=most, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            stopping.cancel()
            changing.cancel()


@asynccontextmanager
async def following(backend: Backend, job: job_pb2.Job, caller: rpc.Identity) -> AsyncIterator[Feed]:
    """The job's feed inside the block, updated by a task of its own."""
    feed = Feed(backend, job, caller)
    task = asyncio.create_task(feed.follow())
    try:
        yield feed
    finally:
        task.cancel()
