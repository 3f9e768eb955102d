"""How far readers of NATS are, and whether it answers, for metrics."""

from __future__ import annotations

import time
from dataclasses import dataclass

import nats.js.errors

from services.bus.contract import AUDIT, KEPT, RESULTS, USAGE, WORK
from services.bus.operations import Bus
from services.telemetry import metrics

_ANSWER_S = 2.0
_PAGE = 256
"""Consumers of one answer."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A durable consumer: how many messages it has not delivered, and how many of the others nobody has
    acknowledged."""

    stream: str
    name: str
    pending: int
    unacknowledged: int


async def measure_connection(bus: Bus) -> None:
    """Sets the gauge."""
    metrics.NATS_CONNECTED.set(await bus.answers(_ANSWER_S))


async def behind(bus: Bus, stream: str, position: int) -> tuple[int, float]:
    """How many messages of a stream come after a position, and how many seconds ago the first of them was stored."""
    state = (await bus.js.stream_info(stream)).state
    first = max(position + 1, state.first_seq)
    if first > state.last_seq:
        return 0, 0.0
    try:
        stored_at = (await bus.js.get_msg(stream, seq=first, next=True)).time
    except nats.js.errors.NotFoundError:  # It was dropped meanwhile.
        return 0, 0.0
    age_s = time.time() - stored_at.timestamp() if stored_at is not None else 0.0
    return state.last_seq - first + 1, max(0.0, age_s)


async def consumers(bus: Bus) -> list[Consumer]:
    """The durable consumers of the streams that services read."""
    found = []
    for stream in (WORK, RESULTS, AUDIT, USAGE, KEPT):
        seen, more = 0, True
        while more:
            page = await bus.js.consumers_info(stream, offset=seen)
            seen, more = seen + len(page), len(page) == _PAGE
            found += [
                Consumer(stream, one.config.durable_name, one.num_pending or 0, one.num_ack_pending or 0)
                for one in page
                if one.config.durable_name
            ]
    return found
