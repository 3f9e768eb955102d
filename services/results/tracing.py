"""Spans of storing results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from nats.aio.msg import Msg

from services import bus
from services.telemetry import traces


def trace_stored(messages: Iterable[Msg], began: float) -> None:
    """After a transaction that began at this time, in seconds since 1970: one span for each job with results in it."""
    if not traces.on():
        return
    ended = time.time()
    items: Counter[tuple[str, int]] = Counter()
    for msg in messages:
        with suppress(ValueError):
            headers = bus.ResultHeaders.decode(msg.headers)
            if headers.kind == bus.KIND_ITEMS:
                items[bus.parse_results_subject(msg.subject)[0], headers.attempt] += headers.items
    for (job_id, attempt), count in items.items():
        traces.add("store", job_id, attempt, began, ended, {"touchstone.items": count}, kind=traces.CONSUMER)
