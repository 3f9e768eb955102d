"""Spans of units of work."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from services.telemetry import traces

if TYPE_CHECKING:
    from services.evaluator.units.units_in_hand import Held


@asynccontextmanager
async def unit(held: Held) -> AsyncIterator[None]:
    """A span from the beginning of a unit until its results are stored in NATS."""
    if not traces.on():
        yield
        return
    began, failed = time.time(), "stopped"
    try:
        yield
        failed = ""
    except Exception as error:
        failed = type(error).__name__
        raise
    finally:
        told = held.unit
        attributes: traces.Attributes = {
            "touchstone.endpoint": held.endpoint,
            "touchstone.task": told.task,
            "touchstone.unit": told.unit,
            "touchstone.items": len(told.positions) or told.stop - told.start,
            "touchstone.delivery": held.delivery,
            "touchstone.waited_s": max(0.0, began - held.msg.metadata.timestamp.timestamp()),
            "messaging.system": "nats",
        }
        name = "unit" if told.task else "plan"
        own = traces.unit(told.unit, held.delivery)
        kind = traces.CONSUMER
        traces.add(name, told.job_id, told.attempt, began, time.time(), attributes, own=own, kind=kind, failed=failed)
