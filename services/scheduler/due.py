"""Which time of a schedule is next, whatever the clock does. Pure: the caller brings the clock.

The clock on the wall may be set, forward and back. A time that has made its job makes no second one when it comes
again, and the times up to the next one are not lost because the clock was ahead for a while.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.scheduler.cron import Cron
from touchstone.v1 import schedule_pb2

_MOST_SPANS = 32
"""A span ends where the clock was set or times were missed: with so many, only times of long ago are forgotten."""


def next_time(cron: Cron, now: float, done: Sequence[schedule_pb2.TimeSpan]) -> float:
    """The first time after `now` that has not made its job. Raises InvalidRequestError when there is none."""
    moment = cron.next(now)
    while (span := next((one for one in done if one.first <= moment <= one.last), None)) is not None:
        moment = cron.next(span.last)
    return moment


def note(cron: Cron, moment: float, schedule: schedule_pb2.Schedule) -> None:
    """Notes that the time has made its job."""
    spans = list(schedule.done)
    at = int(moment)
    before = next((span for span in spans if cron.next(span.last) == moment), None)
    if before is not None:
        spans.remove(before)
    spans.append(schedule_pb2.TimeSpan(first=before.first if before is not None else at, last=at))
    del schedule.done[:]
    schedule.done.extend(spans[-_MOST_SPANS:])
