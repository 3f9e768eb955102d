"""Whether streams can be read, message by message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js import api

from services import bus
from services.bus.contract import info_of_stream
from services.errors import TouchstoneError
from services.words.refusals import counted

_AT_ONCE = 256
_SILENT_S = 5.0
_ADDED = (bus.USAGE,)
"""Streams that version 0.2.0 does not have, and that the first start of a later one makes. The launcher notices the
loss of one that was there."""
GAPLESS = (bus.AUDIT, bus.KEPT)
"""Streams from which no message is ever removed."""


async def stream_faults(connection: bus.Bus, *, most_bytes: float = inf) -> list[tuple[str, str]]:
    """(stream, what is wrong with it) of every stream that a backup holds, except larger ones."""
    found = []
    for stream in bus.BACKED_UP:
        try:
            fault = await _fault(connection, stream, most_bytes)
        except nats.js.errors.NotFoundError:
            fault = "" if stream in _ADDED else "is missing"
        except (nats.errors.Error, nats.js.errors.Error, TouchstoneError, OSError) as error:
            fault = f"cannot be read: {error or type(error).__name__}"
        if fault:
            found.append((stream, fault))
    return found


async def _fault(connection: bus.Bus, stream: str, most_bytes: float) -> str:
    state = await _state(connection, stream)
    if state["bytes"] > most_bytes:
        return ""
    if lost := state.get("lost"):
        return f"has lost {counted(lost.get('bytes', 0), 'byte')} in a damaged block"
    last, there = state["last_seq"], state["messages"]
    if stream in GAPLESS and there < last:
        return f"has {there:,} of {counted(last, 'message')}; the others are lost"
    read = 0
    async for _ in messages(connection, stream, headers_only=True):
        read += 1
    if read < there:
        # Some messages may have expired or been removed while the others were read.
        there = min(there, (await _state(connection, stream))["messages"])
    return "" if read >= there else f"has {counted(there - read, 'message')} that cannot be read, of {there:,}"


async def _state(connection: bus.Bus, stream: str) -> dict[str, Any]:
    answer = await connection.client.request(info_of_stream(stream), b'{"deleted_details": true}', timeout=30)
    told = json.loads(answer.data)
    if "error" in told:
        raise nats.js.errors.APIError.from_error(told["error"])
    state: dict[str, Any] = told["state"]
    return state


async def messages(
    connection: bus.Bus, stream: str, after: int = 0, *, headers_only: bool = False
) -> AsyncIterator[Msg]:
    """Every readable message after a position, in order."""
    config = api.ConsumerConfig(
        deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=api.AckPolicy.NONE,
        inactive_threshold=60,
        mem_storage=True,
        headers_only=headers_only,
    )
    subscription = await connection.js.pull_subscribe("", stream=stream, config=config)
    try:
        left = (await subscription.consumer_info()).num_pending or 0
        while left > 0:
            try:
                fetched = await subscription.fetch(min(left, _AT_ONCE), timeout=_SILENT_S)
            except nats.errors.TimeoutError:
                # The server skips what it cannot read.
                left = min(left - 1, (await subscription.consumer_info()).num_pending or 0)
                continue
            left -= len(fetched)
            for msg in fetched:
                yield msg
    finally:
        await subscription.unsubscribe()


async def bring_over(source: bus.Bus, target: bus.Bus, stream: str, after: int, since: datetime | None) -> int:
    """Publishes to `target` what `source` has after a position; returns the number of messages. `since` is for a stream
    that may have lost its end, or was recreated, and then gave earlier positions to later messages."""
    count = 0
    async for msg in messages(source, stream, after if since is None else 0):
        if msg.metadata.sequence.stream <= after and (since is None or msg.metadata.timestamp <= since):
            continue
        headers = {
            name: value
            for name, value in (msg.headers or {}).items()
            if not name.startswith(("Nats-Expected", "Nats-Batch", "Nats-Msg-Id"))
        }
        if "Nats-Marker-Reason" in headers:
            continue  # The server's own marker that a key has expired.
        await target.js.publish(msg.subject, msg.data, headers=headers or None)
        count += 1
    return count


def has_streams(store: Path) -> bool:
    return any((store / "jetstream").glob("*/streams/*"))


def has_stream(store: Path, stream: str) -> bool:
    """Whether the folder has messages of the stream, even if the server does not see them."""
    return any((store / "jetstream").glob(f"*/streams/{stream}/msgs/*.blk"))
