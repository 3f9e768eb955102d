"""Jobs that run while something fails: how long nothing moves, and whether each item is stored once."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx

from tests.hosts.processes import SCHEDULERS, Hosts
from tests.stack import FINISHED
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient, ClientError, suite_spec

ITEMS = 1600
"""Of the demo suite."""
_AT_ONCE = 2
_READ_S = 0.2
_ANSWER_S = 2.0
_LAST_S = 240.0


@dataclass
class Silence:
    """The longest time without a sign of life, since `begin`."""

    last: float = field(default_factory=time.monotonic)
    longest_s: float = 0.0

    def begin(self) -> None:
        self.last, self.longest_s = time.monotonic(), 0.0

    def end(self) -> None:
        now = time.monotonic()
        self.longest_s, self.last = max(self.longest_s, now - self.last), now


class Work:
    """Two jobs at a time, each of a model of its own, while `feeding`."""

    def __init__(self, hosts: Hosts, token: str, models: Iterator[str]) -> None:
        self.hosts, self.token, self._models = hosts, token, models
        self.jobs: list[str] = []
        self.done: Counter[str] = Counter()
        """Items done, by job, as the leading scheduler last said."""
        self.finished: set[str] = set()
        self.items, self.results, self.gateways = Silence(), Silence(), Silence()
        self.feeding = True
        self.failed: list[str] = []
        """Calls of the client for new jobs. Each is repeated with the same request id."""

    @property
    def moved(self) -> int:
        return sum(self.done.values())

    def begin(self) -> None:
        """From here on, silences count."""
        for silence in (self.items, self.results, self.gateways):
            silence.begin()

    async def until_moved(self, items: int, within_s: float = 120.0) -> None:
        goal = self.moved + items
        async with asyncio.timeout(within_s):
            while self.moved < goal:  # noqa: ASYNC110
                await asyncio.sleep(_READ_S)

    async def feed(self) -> None:
        async with AsyncClient(self.hosts.client(self.token)) as client:
            while self.feeding:
                if len(self.jobs) - len(self.finished) < _AT_ONCE:
                    self.jobs.append(await self._new_job(client))
                await asyncio.sleep(_READ_S)

    async def _new_job(self, client: AsyncClient) -> str:
        spec = suite_spec("demo", endpoint="stub", model=next(self._models))
        request_id = str(uuid.uuid4())
        while True:
            try:
                return str((await client.run(spec, request_id)).job_id)
            except ClientError as error:
                self.failed.append(str(error))
                await asyncio.sleep(_READ_S)

    async def follow(self, scheduler: str) -> None:
        """Reads the jobs from one scheduler: calls that look for the leader would also measure how they find it."""
        settings = replace(self.hosts.client(self.token), scheduler=self.hosts.address(scheduler), timeout_s=_ANSWER_S)
        async with AsyncClient(settings) as client:
            while True:
                for job_id in [job for job in self.jobs if job not in self.finished]:
                    try:
                        self._heard(await client.job(job_id))
                    except ClientError:
                        break
                await asyncio.sleep(_READ_S)

    def _heard(self, job: job_pb2.Job) -> None:
        if job.state in FINISHED:
            self.finished.add(job.job_id)
        elif job.progress.items_done <= self.done[job.job_id]:
            return
        self.done[job.job_id] = max(self.done[job.job_id], job.progress.items_done)
        self.items.end()

    async def ask(self, silence: Silence, answered: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await answered()
            except (ClientError, httpx.HTTPError):
                pass
            else:
                silence.end()
            await asyncio.sleep(_READ_S)

    async def check(self) -> None:
        """Every job is completed, and has each of its items once."""
        async with AsyncClient(self.hosts.client(self.token)) as client:
            for job_id in self.jobs:
                job = await client.wait(job_id, timeout_s=_LAST_S)
                assert job.state == job_pb2.Job.STATE_COMPLETED, job
                assert not job.incomplete, job
                keys = [(item.task, item.result.item, item.result.repeat) async for item in client.items(job_id)]
                assert len(set(keys)) == ITEMS == job.progress.items_done, f"{job_id}: {len(set(keys))} items"
                assert len(keys) == len(set(keys)), f"{job_id}: {len(keys) - len(set(keys))} items twice"


@asynccontextmanager
async def working(hosts: Hosts, token: str, models: Iterator[str]) -> AsyncIterator[Work]:
    """Jobs run, and in the end all are checked."""
    work = Work(hosts, token, models)
    pages = itertools.cycle(name for name in hosts.names if name.startswith("gateway"))
    async with (
        AsyncClient(replace(hosts.client(token), timeout_s=_ANSWER_S)) as client,
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=_ANSWER_S) as http,
    ):

        async def page() -> None:
            # As a load balancer does, the next one is asked when one does not answer.
            answer = await http.get(f"{hosts.page_url(next(pages))}/api/v1/benchmarking/queue")
            answer.raise_for_status()

        feeding = asyncio.create_task(work.feed())
        asking = [asyncio.create_task(work.follow(name)) for name in SCHEDULERS]
        asking.append(asyncio.create_task(work.ask(work.results, client.count_jobs)))
        asking.append(asyncio.create_task(work.ask(work.gateways, page)))
        try:
            await work.until_moved(200)
            yield work
            work.feeding = False
            await feeding
            await work.check()
        finally:
            for task in (feeding, *asking):
                task.cancel()
