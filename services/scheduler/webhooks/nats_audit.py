"""Follows the audit trail for webhooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg

from services import bus
from services.bus import heed_cancel
from services.errors import UnavailableError
from touchstone.v1 import job_pb2

log = logging.getLogger(__name__)

_BATCH = 32
_PULL_S = 5.0
_LATE_S = 1.0
_AGAIN_S = 0.5
_TIMED_OUT = "408"

Handle = Callable[[job_pb2.JobEvent], Awaitable[None]]


async def follow_audit(connection: bus.Bus, aside: bus.SettingAside, handle: Handle) -> None:
    """Hands over every event at least once, for ever; one is acknowledged when `handle` has returned, or when the event
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
            # A stored message may have any headers; the server's own word has nowhere to reply to.
            status = (msg.headers or {}).get("Status")
            if not msg.reply and status == _TIMED_OUT:
                break
            if not msg.reply:
                raise nats.errors.Error(f"status {status} {(msg.headers or {}).get('Description', '')}")
            open_events -= 1
            async with aside.guard(msg):
                await handle(job_pb2.JobEvent.FromString(msg.data))
            await msg.ack()
