"""Spans of units of work."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from services.telemetry import traces

if TYPE_CHECKING:
    from services.evaluator.units.units_in_hand import Held


def unit(held: Held) -> AbstractAsyncContextManager[None]:
    """A span from the beginning of a unit until its results are stored in NATS."""
    if not traces.on():
        return nullcontext()
    told = held.unit
    attributes: traces.Attributes = {
        "touchstone.endpoint": held.endpoint,
        "touchstone.task": told.task,
        "touchstone.unit": told.unit,
        "touchstone.items": len(told.positions) or told.stop - told.start,
        "touchstone.delivery": held.delivery,
        "touchstone.waited_s": max(0.0, time.time() - held.msg.metadata.timestamp.timestamp()),
        "messaging.system": "nats",
    }
    own = traces.unit(told.unit, held.delivery)
    name = "unit" if told.task else "plan"
    return traces.spanning(name, told.job_id, told.attempt, attributes, own=own, kind=traces.CONSUMER)
