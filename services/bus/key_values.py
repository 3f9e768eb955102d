"""Buckets: keys with their newest values; and how loops that wait for NATS heed their end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from services.bus.contract import (
    ERR_STREAM_LIMIT,
    ERR_WRONG_LAST_SEQUENCE,
    ERR_WRONG_LAST_SEQUENCE_CONSTANT,
    REPLACE,
    is_marker,
    kv_subject,
    pull_subject,
)
from services.telemetry import metrics

CONFLICTS = (ERR_WRONG_LAST_SEQUENCE, ERR_WRONG_LAST_SEQUENCE_CONSTANT)
_ALREADY_THERE = "per subject"
"""In the description of the error for a second message of a subject that may have one."""


def expecting(sequence: int) -> dict[str, str]:
    """Headers of a write that is refused unless the key's newest message is the expected one."""
    return {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(sequence)}


_MARKER_S = 60
_FETCH, _FETCH_S, _MOST_SILENT = 256, 2, 5
"""Messages that one look asks for, seconds that it takes at most, and how many in a row may find none."""
_LATE_S = 0.5


class _JetStream(JetStreamContext):
    """Counts messages that the server does not take."""

    async def publish(self, *given: Any, **named: Any) -> api.PubAck:
        try:
            return await super().publish(*given, **named)
        except (nats.errors.Error, OSError) as error:
            if why := _why_not_taken(error):
                metrics.NATS_PUBLISH_FAILURES.add(why)
            raise


def _why_not_taken(error: Exception) -> str:
    """Empty where the server refused as it was asked to."""
    if not isinstance(error, nats.js.errors.APIError):
        return metrics.SILENT
    if error.err_code in CONFLICTS or _ALREADY_THERE in (error.description or ""):
        return ""
    return metrics.FULL if error.err_code == ERR_STREAM_LIMIT else metrics.REFUSED


class KeyValues:
    """Reads and writes buckets over one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js: JetStreamContext = _JetStream(client, timeout=10)

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    @property
    def server_id(self) -> str:
        """The identity of this NATS: a restarted server gets a new one, and a cluster keeps its own."""
        # nats-py tells the server's version only.
        told = getattr(self.client, "_server_info", None) or {}
        return str(told.get("cluster") or told.get("server_id", ""))

    async def kv_get(self, bucket: str, key: str) -> api.RawStreamMsg | None:
        """The newest message of a key, or None when there is none or it was deleted or has expired."""
        try:
            msg = await self._last(f"KV_{bucket}", kv_subject(bucket, key))
        except nats.js.errors.NotFoundError:
            return None
        return None if is_marker(msg.headers) else msg

    async def _last(self, stream: str, subject: str) -> api.RawStreamMsg:
        """The newest message of subjects, from the stream's leader. A direct get may be answered by another node
        of a cluster, which may not have it yet; and nats-py mistakes a stored header `Status` for the server's own."""
        return await self.js.get_last_msg(stream, subject)

    async def kv_put(self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None) -> int:
        ack = await self.js.publish(kv_subject(bucket, key), value, headers=dict(REPLACE), msg_ttl=ttl_s)
        return ack.seq

    async def kv_update(self, bucket: str, key: str, value: bytes, expected: int) -> int | None:
        """Writes if the key's newest message still is `expected` (0: none); its sequence, or None when it is not."""
        try:
            ack = await self.js.publish(kv_subject(bucket, key), value, headers=REPLACE | expecting(expected))
        except nats.js.errors.APIError as error:
            if error.err_code in CONFLICTS:
                return None
            raise
        return ack.seq

    async def kv_create(self, bucket: str, key: str, value: bytes) -> None:
        """Writes unless the key has a value. A deleted key has none, however long its marker stays."""
        if await self.kv_update(bucket, key, value, 0) is None:
            with suppress(nats.js.errors.NotFoundError):
                last = await self._last(f"KV_{bucket}", kv_subject(bucket, key))
                if is_marker(last.headers) or not last.data:
                    await self.kv_update(bucket, key, value, last.seq or 0)

    async def kv_remove(self, bucket: str, key: str, expected: int) -> bool:
        """Deletes if the key's newest message still is `expected`; False when it is not."""
        try:
            await self.kv_delete(bucket, key, expecting(expected))
        except nats.js.errors.APIError as error:
            if error.err_code in CONFLICTS:
                return False
            raise
        return True

    async def kv_delete(self, bucket: str, key: str, expected: dict[str, str] | None = None) -> None:
        """`expected` are headers that the server checks first."""
        subject, marker = kv_subject(bucket, key), {"KV-Operation": "PURGE"} | REPLACE
        ack = await self.js.publish(subject, headers=marker | (expected or {}))
        # The first marker stays for ever: a server that is killed before it has removed the value would show the value
        # again as soon as the marker is gone. Now the value is removed, and a marker that expires replaces the first,
        # or deleted keys would accumulate. If this one is lost, the first stays.
        passing = expecting(ack.seq) | {"Nats-TTL": str(_MARKER_S)}
        with suppress(nats.errors.Error, OSError):
            await self.client.publish(subject, headers=marker | passing)

    async def kv_all(
        self, bucket: str, pattern: str = ">", *, headers_only: bool = False
    ) -> AsyncIterator[tuple[str, Msg]]:
        """Newest value of every live key that matches, as (key, message); messages without data for `headers_only`."""
        prefix = kv_subject(bucket, "")
        async for msg in self.newest(f"KV_{bucket}", prefix + pattern, headers_only=headers_only):
            if not is_marker(msg.headers):
                yield msg.subject.removeprefix(prefix), msg

    async def newest(self, stream: str, pattern: str, *, headers_only: bool = False) -> AsyncIterator[Msg]:
        """The newest message of every subject that matches, with everything that was stored before the call."""
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=pattern,
            inactive_threshold=10,
            mem_storage=True,
            headers_only=headers_only,
        )
        async for msg in self.pulled(stream, config, fresh=pattern):
            yield msg

    async def pulled(
        self, stream: str, config: api.ConsumerConfig, most: int = sys.maxsize, *, until: int = 0, fresh: str = ""
    ) -> AsyncIterator[Msg]:
        """Up to this many messages that a new consumer finds in its stream.

        The consumer may be on a node of a cluster that does not have the last messages yet. So it also waits for a
        message at position `until` or later, and, with `fresh`, for the last one of these subjects. In the latter case
        each subject comes once.

        Pull requests are written here, not by nats-py's `fetch`, which mistakes a header `Status` of a stored message
        for the server's own. Raises nats.errors.TimeoutError when messages do not come.
        """
        messages: asyncio.Queue[Msg] = asyncio.Queue()
        inbox = self.client.new_inbox()
        subscription = await self.client.subscribe(
            inbox, cb=messages.put, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        try:
            made = await self.js.add_consumer(stream, config)
            if fresh and made.cluster is not None:
                late = await self._last_position(stream, fresh)
                newest: dict[str, Msg] = {}
                async for msg in self._from(stream, made, messages, inbox, most, late):
                    newest[msg.subject] = msg
                for msg in newest.values():
                    yield msg
            else:
                async for msg in self._from(stream, made, messages, inbox, most, until):
                    yield msg
        finally:
            await subscription.unsubscribe()

    async def _last_position(self, stream: str, subjects: str) -> int:
        """Of the last message of these subjects, by the stream's leader; 0 if there is none."""
        try:
            return (await self._last(stream, subjects)).seq or 0
        except nats.js.errors.NotFoundError:
            return 0

    async def _from(
        self, stream: str, made: api.ConsumerInfo, messages: asyncio.Queue[Msg], inbox: str, most: int, until: int
    ) -> AsyncIterator[Msg]:
        left, silent, received, position = min(most, made.num_pending or 0), 0, 0, 0
        while left > 0 or position < until:
            request = {"batch": min(max(left, 1), _FETCH), "expires": int(_FETCH_S * 1e9)}
            await self.client.publish(pull_subject(stream, made.name), json.dumps(request).encode(), reply=inbox)
            came = 0
            while came < request["batch"] and (left > 0 or position < until):
                if (msg := await _stored(messages)) is None:
                    break
                came, received = came + 1, received + 1
                if msg.metadata.sequence.consumer != received:
                    raise nats.errors.TimeoutError
                left, position = min(left - 1, msg.metadata.num_pending), msg.metadata.sequence.stream
                yield msg
            if not came:
                # What was counted may have been replaced, deleted or have expired since.
                info = await self.js.consumer_info(stream, made.name)
                left, silent = min(left, info.num_pending or 0), silent + 1
                # A message that was sent and did not arrive counts as read, and never comes again.
                lost = info.delivered is not None and info.delivered.consumer_seq > received
                if lost or ((left > 0 or position < until) and silent >= _MOST_SILENT):
                    raise nats.errors.TimeoutError

    async def kv_watch(self, bucket: str, pattern: str, callback: Callable[[Msg], Awaitable[None]]) -> Any:
        """Core subscription to a bucket's writes. At most once: re-read with `kv_all` after a reconnect. A write also
        comes before it is stored, even if the bucket refuses it, so read the value before acting on it.

        Chosen over a KV watch, which resumes only some 19 s after a server restart.
        """
        return await self.client.subscribe(kv_subject(bucket, pattern), cb=callback)


async def _stored(messages: asyncio.Queue[Msg]) -> Msg | None:
    """The next stored message; None when the request is over, or when it or its end went down with a connection."""
    heed_cancel()
    try:
        async with asyncio.timeout(_FETCH_S + _LATE_S):
            msg = await messages.get()
    except TimeoutError:
        return None
    # A stored message may have any headers; messages from the server itself have no reply subject.
    return msg if msg.reply else None


def heed_cancel() -> None:
    """Raises CancelledError when the running task was asked to end. Loops around calls of NATS ask here:
    nats-py waits with `asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes with the answer.

    Not for a task in which a TaskGroup has failed: before Python 3.13 that may leave the group's own request behind.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels until they end, as often as that takes."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.5)


async def until_first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Runs all until one ends, then ends the others. Raises the error of the first."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_tasks(tasks)
