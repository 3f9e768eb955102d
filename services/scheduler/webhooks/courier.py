"""From a job's end in the audit trail to the calls of webhooks: one delivery for each receiver, made at least once.

The record is removed after the receiver has accepted, so a crash at any moment may repeat a call but never loses one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from services.bus import end_tasks
from services.errors import NotFoundError, UnavailableError
from services.scheduler.jobs.job import seconds, stamp
from services.scheduler.settings import WebhookSettings
from services.scheduler.webhooks import deliveries
from services.scheduler.webhooks.address import host_of
from services.scheduler.webhooks.ports import Caller, Deliveries, Hooks
from services.words.jobs import DECISION_ENDED, WATCH_ALARM
from touchstone.v1 import decision_pb2, job_pb2, watch_pb2, webhook_pb2

log = logging.getLogger(__name__)

T = TypeVar("T")


class Courier:
    """Deliveries under one leadership. `wall` gives seconds since 1970; a failed write is repeated `again_s` later."""

    def __init__(
        self,
        hooks: Hooks,
        deliveries: Deliveries,
        caller: Caller,
        settings: WebhookSettings,
        wall: Callable[[], float],
        *,
        again_s: float = 1.0,
    ) -> None:
        self._hooks, self._deliveries, self._caller = hooks, deliveries, caller
        self._settings, self._wall, self._again_s = settings, wall, again_s
        self._dice = random.Random()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resume(self) -> None:
        """Continues with what an earlier leadership left."""
        async for delivery, revision in self._deliveries.all():
            if delivery.HasField("next_try_at"):
                self.take(delivery, revision)

    def take(self, delivery: webhook_pb2.Delivery, revision: int) -> None:
        """Calls when it is due; does nothing for one that is in hand."""
        if delivery.delivery_id in self._tasks:
            return
        task = asyncio.create_task(self._deliver(delivery, revision))
        self._tasks[delivery.delivery_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(delivery.delivery_id, None))

    async def close(self) -> None:
        """Ends every call; the next leadership completes the rest."""
        await end_tasks(self._tasks.values())

    async def _deliver(self, delivery: webhook_pb2.Delivery, revision: int) -> None:
        now: webhook_pb2.Delivery | None = delivery
        current: int | None = revision
        while now is not None and current is not None and now.HasField("next_try_at"):
            # A time further away was set while the clock was ahead.
            due_in = min(seconds(now.next_try_at) - self._wall(), 2 * self._settings.span_s)
            await asyncio.sleep(max(0.0, due_in))
            try:
                now, current = await self._try(now, current)
            except UnavailableError as error:
                log.warning("delivery %s waits: %s", delivery.delivery_id, error.message)
                await asyncio.sleep(self._again_s)
            except Exception:
                log.exception("delivery %s cannot be made", delivery.delivery_id)
                return

    async def _try(
        self, delivery: webhook_pb2.Delivery, revision: int
    ) -> tuple[webhook_pb2.Delivery | None, int | None]:
        """One call; returns the rest to do with its revision, or (None, None)."""
        secret = await self._secret(delivery)
        if not secret:
            # Its webhook was deleted meanwhile.
            await self._until_stored(lambda: self._deliveries.remove(delivery, revision))
            return None, None
        host = self._hosts.setdefault(host_of(delivery.url), asyncio.Semaphore(self._settings.at_once_per_host))
        async with host:
            headers = deliveries.headers(delivery, secret, self._wall())
            answer = await self._caller.post(delivery.url, headers, delivery.body.encode())
        if answer.delivered:
            await self._until_stored(lambda: self._deliveries.remove(delivery, revision))
            return None, None
        left = deliveries.after(delivery, answer, self._settings, self._wall(), self._dice)
        if not left.HasField("next_try_at"):
            log.warning(
                "delivery %s (%s %s) was given up after %d tries: %s",
                left.delivery_id, left.event, left.job_id or "of no job", left.tries, left.problem,
            )  # fmt: skip
        return left, await self._until_stored(lambda: self._replace(left, revision))

    async def _replace(self, left: webhook_pb2.Delivery, revision: int) -> int | None:
        stored = await self._deliveries.replace(left, revision)
        if stored is None:
            # This may be a repetition of a write whose answer was lost.
            found = await self._deliveries.get(left.delivery_id)
            return found[1] if found is not None and found[0] == left else None
        return stored

    async def _secret(self, delivery: webhook_pb2.Delivery) -> str:
        if not delivery.webhook_id:
            return deliveries.job_secret(await self._hooks.installation_key(), delivery.owner)
        record = await self._hooks.get(delivery.owner, delivery.webhook_id)
        return record.secret if record is not None else ""

    async def _until_stored(self, write: Callable[[], Awaitable[T]]) -> T:
        """The result of a call is stored before anything else: the call must not be repeated needlessly."""
        while True:
            with suppress(UnavailableError):
                return await write()
            await asyncio.sleep(self._again_s)


class Fanout:
    """Accepts repeated events: the deliveries of an event are the same each time. `alarm` gives the watch of which a
    run has raised the alarm, `decided` the decision that ended with a job; they raise NotFoundError for a job that was
    deleted."""

    def __init__(
        self,
        hooks: Hooks,
        deliveries: Deliveries,
        courier: Courier,
        alarm: Callable[[str], Awaitable[watch_pb2.Watch | None]],
        decided: Callable[[str], Awaitable[decision_pb2.Decision | None]],
        wall: Callable[[], float],
    ) -> None:
        self._hooks, self._deliveries, self._courier, self._wall = hooks, deliveries, courier, wall
        self._alarm, self._decided = alarm, decided

    async def take(self, event: job_pb2.JobEvent) -> None:
        """Returns once every delivery is stored. Raises UnavailableError."""
        name = deliveries.event_name(event)
        if not name:
            return
        await self._call(event, name)
        job = event.job
        if name == "job.completed" and job.spec.HasField("watching"):
            await self._call_about(event, WATCH_ALARM, self._alarm)
        if job.spec.HasField("deciding") and job.attempt == 1:
            await self._call_about(event, DECISION_ENDED, self._decided)

    async def _call_about(
        self, event: job_pb2.JobEvent, name: str, ask: Callable[[str], Awaitable[deliveries.About | None]]
    ) -> None:
        # Only with somebody to tell is it worth waiting for the results service.
        if await self._targets(event, name):
            with suppress(NotFoundError):
                about = await ask(event.job.job_id)
                if about is not None:
                    await self._call(event, name, about)

    async def _targets(self, event: job_pb2.JobEvent, name: str) -> list[tuple[str, str]]:
        """URLs and the ids of their webhooks."""
        job = event.job
        targets = [(job.spec.webhook_url, "")] if job.spec.webhook_url else []
        for hook in await self._hooks.of(job.owner):
            if name in hook.events and hook.project_id in (0, job.spec.project_id):
                targets.append((hook.url, hook.webhook_id))
        return targets

    async def _call(self, event: job_pb2.JobEvent, name: str, about: deliveries.About | None = None) -> None:
        for url, webhook_id in await self._targets(event, name):
            delivery = deliveries.delivery(event, url, webhook_id, about)
            stamp(delivery.next_try_at, self._wall())
            revision = await self._deliveries.add(delivery)
            if revision is None:
                # It is already there. Perhaps the answer to that write was lost, and no task handles it.
                found = await self._deliveries.get(delivery.delivery_id)
                if found is None or not found[0].HasField("next_try_at"):
                    continue
                delivery, revision = found
            self._courier.take(delivery, revision)
