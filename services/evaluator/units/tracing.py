"""Spans of units of work."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, nullcontext

from nats.aio.msg import Msg

from services.telemetry import traces
from touchstone.v1 import unit_pb2


def unit(endpoint: str, told: unit_pb2.Unit, msg: Msg) -> AbstractAsyncContextManager[None]:
    """A span from the beginning of a unit until its results are stored in NATS."""
    if not traces.on():
        return nullcontext()
    delivery, sent = msg.metadata.num_delivered, msg.metadata.timestamp
    attributes: traces.Attributes = {
        "touchstone.endpoint": endpoint,
        "touchstone.task": told.task,
        "touchstone.unit": told.unit,
        "touchstone.items": len(told.positions) or told.stop - told.start,
        "touchstone.delivery": delivery,
        "touchstone.waited_s": max(0.0, time.time() - sent.timestamp()),
        "messaging.system": "nats",
    }
    own = traces.unit(told.unit, delivery)
    name = "unit" if told.task else "plan"
    return traces.spanning(name, told.job_id, told.attempt, attributes, own=own, kind=traces.CONSUMER)
