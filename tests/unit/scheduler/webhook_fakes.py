"""The ports of webhooks in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from services.errors import UnavailableError
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks.courier import Courier, Fanout
from services.scheduler.webhooks.deliveries import Answer
from services.scheduler.webhooks.digests import Digests
from services.scheduler.webhooks.requests import WebhookDesk
from touchstone.v1 import decision_pb2, digest_pb2, job_pb2, results_service_pb2, watch_pb2, webhook_pb2


class FakeHooks:
    """The answers to the next `unheard` writes of `replace` are lost."""

    def __init__(self) -> None:
        self.records: dict[str, webhook_pb2.WebhookRecord] = {}
        self.revisions: dict[str, int] = {}
        self.unheard = 0

    async def add(self, record: webhook_pb2.WebhookRecord) -> None:
        self.records[record.webhook.webhook_id] = record
        self.revisions[record.webhook.webhook_id] = 1

    async def replace(self, record: webhook_pb2.WebhookRecord, revision: int) -> int | None:
        await asyncio.sleep(0)
        webhook_id = record.webhook.webhook_id
        if webhook_id not in self.records or self.revisions[webhook_id] != revision:
            return None
        self.records[webhook_id], self.revisions[webhook_id] = record, revision + 1
        if self.unheard:
            self.unheard -= 1
            raise UnavailableError("the answer was lost")
        return revision + 1

    async def all(self) -> AsyncIterator[tuple[webhook_pb2.WebhookRecord, int]]:
        for webhook_id, record in list(self.records.items()):
            copy = webhook_pb2.WebhookRecord()
            copy.CopyFrom(record)
            yield copy, self.revisions[webhook_id]

    async def remove(self, webhook: webhook_pb2.Webhook) -> None:
        self.records.pop(webhook.webhook_id, None)

    async def get(self, owner: str, webhook_id: str) -> webhook_pb2.WebhookRecord | None:
        found = self.records.get(webhook_id)
        return found if found is not None and found.webhook.owner == owner else None

    async def of(self, owner: str) -> list[webhook_pb2.Webhook]:
        return [record.webhook for record in self.records.values() if owner in ("", record.webhook.owner)]

    async def installation_key(self) -> bytes:
        return b"k" * 32


class FakeDeliveries:
    """`down` makes it silent; the answers to the next `unheard` writes are lost."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[bytes, int]] = {}
        self.down = False
        self.unheard = 0
        self._revision = 0

    async def add(self, delivery: webhook_pb2.Delivery) -> int | None:
        return await self.replace(delivery, 0)

    async def replace(self, delivery: webhook_pb2.Delivery, revision: int) -> int | None:
        await self._answer()
        if self.records.get(delivery.delivery_id, (b"", 0))[1] != revision:
            return None
        self._revision += 1
        self.records[delivery.delivery_id] = delivery.SerializeToString(), self._revision
        if self.unheard:
            self.unheard -= 1
            raise UnavailableError("the answer was lost")
        return self._revision

    async def remove(self, delivery: webhook_pb2.Delivery, revision: int) -> None:
        await self._answer()
        if self.records.get(delivery.delivery_id, (b"", 0))[1] == revision:
            del self.records[delivery.delivery_id]

    async def get(self, delivery_id: str) -> tuple[webhook_pb2.Delivery, int] | None:
        if delivery_id not in self.records:
            return None
        data, revision = self.records[delivery_id]
        return webhook_pb2.Delivery.FromString(data), revision

    async def all(self) -> AsyncIterator[tuple[webhook_pb2.Delivery, int]]:
        for data, revision in list(self.records.values()):
            yield webhook_pb2.Delivery.FromString(data), revision

    async def _answer(self) -> None:
        await asyncio.sleep(0)
        if self.down:
            raise UnavailableError("down")


@dataclass
class FakeCaller:
    """Answers with what `answer` says of a URL and the number of calls to it so far."""

    answer: Callable[[str, int], Answer] = lambda url, number: Answer(200)
    calls: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    """Calls of URLs with "slow" in them end when it is set."""
    under_way: int = 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.calls.append((url, headers, body))
        number = sum(called == url for called, _, _ in self.calls)
        if "slow" in url:
            self.under_way += 1
            await self.hanging.wait()
            self.under_way -= 1
        await asyncio.sleep(0)
        return self.answer(url, number)


class Calls:
    """Webhooks over fakes, with a clock that stands unless the test moves it. Waits take no time."""

    def __init__(self, **settings: float) -> None:
        self.time = 1_000_000.0
        self.hooks, self.deliveries, self.caller = FakeHooks(), FakeDeliveries(), FakeCaller()
        self.alarms: dict[str, watch_pb2.Watch] = {}
        """By the job that raises them."""
        self.decisions: dict[str, decision_pb2.Decision] = {}
        """By the job with which they end."""
        self.asked: list[tuple[results_service_pb2.GetDigestRequest, str]] = []
        """Digests, each with the user who may read it."""
        self.runs = True
        """Whether digests have any."""
        self.settings = WebhookSettings(**{"span_s": 0.0, **settings})  # type: ignore[arg-type]
        self.lead()

    def lead(self) -> None:
        """A new leadership over the same records."""
        self.courier = Courier(self.hooks, self.deliveries, self.caller, self.settings, self.now, again_s=0.01)
        self.fanout = Fanout(self.hooks, self.deliveries, self.courier, self.alarm, self.decided, self.now)
        self.digests = Digests(self.hooks, self.deliveries, self.courier, self.digest, self.now)
        self.desk = WebhookDesk(self.hooks, self.deliveries, self.courier, self.settings, self.now)

    async def alarm(self, job_id: str) -> watch_pb2.Watch | None:
        return self.alarms.get(job_id)

    async def decided(self, job_id: str) -> decision_pb2.Decision | None:
        return self.decisions.get(job_id)

    async def digest(self, request: results_service_pb2.GetDigestRequest, owner: str) -> digest_pb2.Digest:
        self.asked.append((request, owner))
        made = digest_pb2.Digest(begin_at=request.begin_at, end_at=request.end_at)
        if self.runs:
            made.series.add(model="m", endpoint="e", suite="demo", runs=2)
        return made

    def now(self) -> float:
        return self.time

    async def settle(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)


def ended(action: str = "completed", *, event_id: str = "1", url: str = "", project_id: int = 0) -> job_pb2.JobEvent:
    """A job's end."""
    job = job_pb2.Job(job_id="j1", owner="alice", reason="It broke." if action == "failed" else "")
    job.spec.CopyFrom(
        job_pb2.JobSpec(model="m", project_id=project_id, suite=job_pb2.SuiteWork(suite="demo"), webhook_url=url)
    )
    job.created_at.FromJsonString("2026-11-20T10:00:00.5Z")
    job.finished_at.FromJsonString("2026-11-20T10:01:00Z")
    return job_pb2.JobEvent(event_id=event_id, action=action, job=job)
