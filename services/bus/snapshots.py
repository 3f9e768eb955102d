"""Streams as files and back, the way the server itself writes them: with every message, position and consumer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import IO, Any

import nats.errors
from nats.aio.msg import Msg

from services.bus import contract
from services.bus.operations import Bus
from services.errors import UnavailableError

_CHUNK_BYTES = 256 * 1024
_SILENT_S = 60.0

Head = dict[str, Any]
"""What the server needs in addition to the bytes: the stream's configuration and state."""


async def save_stream(bus: Bus, stream: str, write: Callable[[bytes], object]) -> Head:
    """Writes a stream as it is at one moment, piece by piece. Raises UnavailableError when NATS is away or the stream
    cannot be read, and what `write` raises."""
    chunks: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = bus.client.new_inbox()
    subscription = await bus.client.subscribe(inbox, cb=chunks.put, pending_msgs_limit=-1, pending_bytes_limit=-1)
    try:
        asked = {"deliver_subject": inbox, "chunk_size": _CHUNK_BYTES, "jsck": True}
        head = await _ask(bus, contract.snapshot_subject(stream), json.dumps(asked).encode())
        while True:
            async with asyncio.timeout(_SILENT_S):
                msg = await chunks.get()
            if not msg.data:
                break
            await asyncio.to_thread(write, msg.data)
            if msg.reply:
                # The server sends at most a few unacknowledged megabytes.
                await bus.client.publish(msg.reply)
        if (status := (msg.headers or {}).get("Status", "204")) != "204":
            why = (msg.headers or {}).get("Description", status)
            raise UnavailableError(f"NATS cannot read the stream {stream}: {why}.")
    except (nats.errors.Error, TimeoutError) as error:
        raise UnavailableError(f"NATS does not answer while {stream} is read. Try again.") from error
    finally:
        await subscription.unsubscribe()
    return {"config": head["config"], "state": head["state"]}


async def restore_stream(bus: Bus, head: Head, file: IO[bytes]) -> None:
    """Makes a stream, which must not be there, of such a file. Raises UnavailableError, and OSError when that cannot be
    read."""
    stream = head["config"]["name"]
    try:
        made = await _ask(bus, contract.restore_subject(stream), json.dumps(head).encode())
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            await _ask(bus, made["deliver_subject"], chunk)
        await _ask(bus, made["deliver_subject"], b"")
    except nats.errors.Error as error:
        raise UnavailableError(f"NATS does not answer while {stream} is restored. Try again.") from error


async def _ask(bus: Bus, subject: str, data: bytes) -> Head:
    answer = await bus.client.request(subject, data, timeout=_SILENT_S)
    told: Head = json.loads(answer.data) if answer.data else {}
    if "error" in told:
        raise UnavailableError(f"NATS refused the request: {told['error'].get('description', 'no reason given')}.")
    return told
