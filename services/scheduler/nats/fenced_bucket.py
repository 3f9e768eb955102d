"""Writes to the JOBS bucket that only the present leader can make."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

from services import bus
from services.scheduler.nats.errors import ends_leadership
from services.scheduler.ports import LeadershipLostError

Write = tuple[str, bytes, dict[str, str]]
"""Subject, value and headers."""

_COMMIT_S = 5.0


class FencedBucket:
    """The JOBS bucket under one leadership: every write expects the epoch key as this leader wrote it."""

    def __init__(self, connection: bus.Bus, epoch: int) -> None:
        self._bus = connection
        self._epoch = epoch

    def write(self, key: str, value: bytes, headers: dict[str, str] | None = None) -> Write:
        """One message for `atomic`."""
        fence = {
            "Nats-Expected-Last-Subject-Sequence": str(self._epoch),
            "Nats-Expected-Last-Subject-Sequence-Subject": bus.kv_subject(bus.JOBS, bus.EPOCH_KEY),
        }
        return bus.kv_subject(bus.JOBS, key), value, fence | bus.REPLACE | (headers or {})

    async def atomic(self, writes: Sequence[Write]) -> None:
        """Publishes up to 1,000 messages, all or none. Raises LeadershipLostError."""
        client = self._bus.client
        batch = uuid.uuid4().hex
        for i, (subject, data, extra) in enumerate(writes, 1):
            headers = extra | {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(i)}
            if i == len(writes):
                headers["Nats-Batch-Commit"] = "1"
            with ends_leadership("the outcome of a write is unknown"):
                if i not in (1, len(writes)):
                    await client.publish(subject, data, headers=headers)
                    continue
                # The first tells that the batch is open, the last that it is stored.
                reply = await client.request(subject, data, headers=headers, timeout=_COMMIT_S)
            refusal = json.loads(reply.data).get("error") if reply.data else None
            if refusal:
                raise LeadershipLostError(f"a write was refused: {refusal.get('description')}")

    async def remove(self, key: str) -> None:
        """Raises LeadershipLostError."""
        _, _, fence = self.write(key, b"")
        with ends_leadership("a record could not be removed"):
            await self._bus.kv_delete(bus.JOBS, key, fence)
