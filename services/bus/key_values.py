"""Buckets: keys with their newest values."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from services.bus.contract import (
    ERR_WRONG_LAST_SEQUENCE,
    ERR_WRONG_LAST_SEQUENCE_CONSTANT,
    REPLACE,
    is_marker,
    kv_subject,
)

CONFLICTS = (ERR_WRONG_LAST_SEQUENCE, ERR_WRONG_LAST_SEQUENCE_CONSTANT)


def expecting(sequence: int) -> dict[str, str]:
    """Headers of a write that is refused when the key's newest message is another one."""
    return {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(sequence)}


_MARKER_S = 60
_FETCH_S, _MOST_SILENT = 2, 5
"""Seconds that one look for messages takes at most, and so many in a row without any are a failure."""


class KeyValues:
    """Reads and writes buckets over one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.js: JetStreamContext = client.jetstream(timeout=10)

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    @property
    def server_id(self) -> str:
        """Which NATS this is: another one after a restart of the server. A cluster as a whole is one that stays."""
        # nats-py tells the server's version only.
        told = getattr(self.client, "_server_info", None) or {}
        return str(told.get("cluster") or told.get("server_id", ""))

    async def kv_get(self, bucket: str, key: str) -> api.RawStreamMsg | None:
        """The newest message of a key, or None when there is none or it was deleted or has expired."""
        try:
            msg = await self.js.get_last_msg(f"KV_{bucket}", kv_subject(bucket, key), direct=True)
        except nats.js.errors.NotFoundError:
            return None
        return None if is_marker(msg.headers) else msg

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
        # The marker itself goes after a minute, or deleted keys would pile up.
        headers = {"KV-Operation": "PURGE"} | REPLACE | (expected or {})
        await self.js.publish(kv_subject(bucket, key), headers=headers, msg_ttl=_MARKER_S)

    async def kv_all(
        self, bucket: str, pattern: str = ">", *, headers_only: bool = False
    ) -> AsyncIterator[tuple[str, Msg]]:
        """Newest value of every live key that matches, as (key, message); messages without data for `headers_only`."""
        prefix = kv_subject(bucket, "")
        async for msg in self.newest(f"KV_{bucket}", prefix + pattern, headers_only=headers_only):
            if not is_marker(msg.headers):
                yield msg.subject.removeprefix(prefix), msg

    async def newest(self, stream: str, pattern: str, *, headers_only: bool = False) -> AsyncIterator[Msg]:
        """The newest message of every subject that matches."""
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            ack_policy=api.AckPolicy.NONE,
            filter_subject=pattern,
            inactive_threshold=10,
            mem_storage=True,
            headers_only=headers_only,
        )
        sub = await self.js.pull_subscribe(pattern, stream=stream, config=config)
        try:
            async for msg in self.read(sub):
                yield msg
        finally:
            await sub.unsubscribe()

    async def read(self, sub: JetStreamContext.PullSubscription, most: int = sys.maxsize) -> AsyncIterator[Msg]:
        """Up to so many messages of those that a new consumer finds in its stream."""
        left, silent, received = min(most, (await sub.consumer_info()).num_pending or 0), 0, 0
        while left > 0:
            try:
                messages = await sub.fetch(min(left, 256), timeout=_FETCH_S)
            except TimeoutError as error:  # nats-py raises its own, and asyncio's
                # What was counted may have been replaced, deleted or have expired since.
                info = await sub.consumer_info()
                left, silent = min(left, info.num_pending or 0), silent + 1
                # What was sent and did not arrive counts as read, and never comes again.
                lost = info.delivered is not None and info.delivered.consumer_seq > received
                if lost or (left and silent >= _MOST_SILENT):
                    raise nats.errors.TimeoutError from error
                continue
            for msg in messages:
                received += 1
                if msg.metadata.sequence.consumer != received:
                    raise nats.errors.TimeoutError
                left = min(left - 1, msg.metadata.num_pending)
                yield msg

    async def kv_watch(self, bucket: str, pattern: str, callback: Callable[[Msg], Awaitable[None]]) -> Any:
        """Core subscription to a bucket's writes. At most once: re-read with `kv_all` after a reconnect. And before it
        is stored: a write that the bucket refuses comes too, so read what matters before acting on it.

        Chosen over a KV watch, which resumes only some 19 s after a server restart.
        """
        return await self.client.subscribe(kv_subject(bucket, pattern), cb=callback)
