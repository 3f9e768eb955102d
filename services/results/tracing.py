"""Spans of storing results, and of computing scores."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from nats.aio.msg import Msg

from services import bus
from services.telemetry import traces
from touchstone.v1 import job_pb2


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


@contextmanager
def sealing(job: job_pb2.Job) -> Iterator[None]:
    """A span of computing and storing a job's scores."""
    began, failed = time.time(), "stopped"
    try:
        yield
        failed = ""
    except Exception as error:
        failed = type(error).__name__
        raise
    finally:
        traces.add("score", job.job_id, job.attempt, began, time.time(), {}, failed=failed)
