"""Webhooks in NATS: the buckets WEBHOOKS (`hook.<owner>.<id>`, `key`) and DELIVERIES (`<id>`), and the audit trail."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg

from services import bus
from services.bus import heed_cancel
from services.errors import UnavailableError
from services.scheduler.nats.lease import silent
from touchstone.v1 import job_pb2, webhook_pb2

_KEY = "key"

log = logging.getLogger(__name__)

_BATCH = 32
_PULL_S = 5.0
_LATE_S = 1.0
_AGAIN_S = 0.5
_TIMED_OUT = "408"

Handle = Callable[[job_pb2.JobEvent], Awaitable[None]]


class HookBucket:
    """Registered webhooks, read again each time: they are needed when a job ends, which is rare."""

    def __init__(self, connection: bus.Bus, aside: bus.SettingAside) -> None:
        self._bus = connection
        self._aside = aside

    async def add(self, record: webhook_pb2.WebhookRecord) -> None:
        with silent():
            await self._bus.kv_put(bus.WEBHOOKS, _hook_key(record.webhook), record.SerializeToString())

    async def remove(self, webhook: webhook_pb2.Webhook) -> None:
        with silent():
            await self._bus.kv_delete(bus.WEBHOOKS, _hook_key(webhook))

    async def get(self, owner: str, webhook_id: str) -> webhook_pb2.WebhookRecord | None:
        key = _hook_key(webhook_pb2.Webhook(owner=owner, webhook_id=webhook_id))
        with silent():
            found = await self._bus.kv_get(bus.WEBHOOKS, key)
        return webhook_pb2.WebhookRecord.FromString(found.data) if found and found.data else None

    async def of(self, owner: str) -> list[webhook_pb2.Webhook]:
        return [record.webhook async for record, _ in self._matching(f"hook.{_hash(owner)}.*" if owner else "hook.>")]

    def all(self) -> AsyncIterator[tuple[webhook_pb2.WebhookRecord, int]]:
        return self._matching("hook.>")

    async def _matching(self, pattern: str) -> AsyncIterator[tuple[webhook_pb2.WebhookRecord, int]]:
        with silent():
            async for _, msg in self._bus.kv_all(bus.WEBHOOKS, pattern):
                record = None
                async with self._aside.guard(msg):
                    record = webhook_pb2.WebhookRecord.FromString(msg.data)
                if record is not None:
                    yield record, msg.metadata.sequence.stream

    async def replace(self, record: webhook_pb2.WebhookRecord, revision: int) -> int | None:
        with silent():
            return await self._bus.kv_update(
                bus.WEBHOOKS, _hook_key(record.webhook), record.SerializeToString(), revision
            )

    async def installation_key(self) -> bytes:
        with silent():
            while True:
                found = await self._bus.kv_get(bus.WEBHOOKS, _KEY)
                if found and found.data:
                    return found.data
                await self._bus.kv_create(bus.WEBHOOKS, _KEY, secrets.token_bytes(32))


class DeliveryBucket:
    """Calls that are not done, and for two weeks those that were given up."""

    def __init__(self, connection: bus.Bus, aside: bus.SettingAside) -> None:
        self._bus = connection
        self._aside = aside

    async def add(self, delivery: webhook_pb2.Delivery) -> int | None:
        return await self.replace(delivery, 0)

    async def replace(self, delivery: webhook_pb2.Delivery, revision: int) -> int | None:
        with silent():
            return await self._bus.kv_update(
                bus.DELIVERIES, delivery.delivery_id, delivery.SerializeToString(), revision
            )

    async def remove(self, delivery: webhook_pb2.Delivery, revision: int) -> None:
        with silent():
            await self._bus.kv_remove(bus.DELIVERIES, delivery.delivery_id, revision)

    async def get(self, delivery_id: str) -> tuple[webhook_pb2.Delivery, int] | None:
        with silent():
            found = await self._bus.kv_get(bus.DELIVERIES, delivery_id)
        if found is None or not found.data:
            return None
        return webhook_pb2.Delivery.FromString(found.data), int(found.seq or 0)

    async def all(self) -> AsyncIterator[tuple[webhook_pb2.Delivery, int]]:
        with silent():
            async for _, msg in self._bus.kv_all(bus.DELIVERIES):
                delivery = None
                async with self._aside.guard(msg):
                    delivery = webhook_pb2.Delivery.FromString(msg.data)
                if delivery is not None:
                    yield delivery, msg.metadata.sequence.stream


def _hook_key(webhook: webhook_pb2.Webhook) -> str:
    return f"hook.{_hash(webhook.owner)}.{webhook.webhook_id}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def follow_audit(connection: bus.Bus, aside: bus.SettingAside, handle: Handle) -> None:
    """Passes on every event at least once, without end; an event is acknowledged when `handle` has returned, or when it
    was set aside."""
    # Not by nats-py's `fetch`, which may lose a cancellation and then wait for ever.
    messages: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = connection.client.new_inbox()
    subscription = await connection.client.subscribe(inbox, cb=messages.put)
    try:
        while True:
            heed_cancel()
            try:
                await connection.webhooks_consumer()
                await _pull(connection, aside, inbox, messages, handle)
            except (UnavailableError, nats.errors.Error, nats.js.errors.Error) as error:
                log.warning("webhooks wait for the audit trail: %s", error or type(error).__name__)
                await asyncio.sleep(_AGAIN_S)
    finally:
        with suppress(nats.errors.Error):
            await subscription.unsubscribe()


async def _pull(
    connection: bus.Bus, aside: bus.SettingAside, inbox: str, messages: asyncio.Queue[Msg], handle: Handle
) -> None:
    """One request after another, until one is refused."""
    while True:
        await connection.pull_audit(inbox, _BATCH, _PULL_S)
        open_events = _BATCH
        while open_events:
            heed_cancel()
            try:
                async with asyncio.timeout(_PULL_S + _LATE_S):
                    msg = await messages.get()
            except TimeoutError:
                break  # The request, or its end, went down with a connection.
            # A stored message may have any headers; messages from the server itself have no reply subject.
            status = (msg.headers or {}).get("Status")
            if not msg.reply and status == _TIMED_OUT:
                break
            if not msg.reply:
                raise nats.errors.Error(f"status {status} {(msg.headers or {}).get('Description', '')}")
            open_events -= 1
            async with aside.guard(msg):
                await handle(job_pb2.JobEvent.FromString(msg.data))
            await msg.ack()
