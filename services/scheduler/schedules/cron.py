"""When a schedule comes due, whatever the clock does. Pure: the caller brings the clock.

The clock on the wall may be set, forward and back. A time that has made its job does not make a second one when it
comes again, and times are not lost because the clock was ahead for a while.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from services.errors import InvalidRequestError
from services.words import refusals
from touchstone.v1 import schedule_pb2

_FIELDS = 5
_LOOKED_AT = 1000
_HORIZON_S = 400 * 24 * 3600.0

_MOST_SPANS = 32
"""A span ends where the clock was set or times were missed: with this many, only times of long ago are forgotten."""


class Cron:
    """Five cron fields in a time zone. In an hour that a clock change skips or repeats, Debian cron's rules apply.

    Raises InvalidRequestError for invalid fields or an unknown zone.
    """

    def __init__(self, fields: str, time_zone: str) -> None:
        self._fields = fields
        try:
            self._zone = ZoneInfo(time_zone or "UTC")
        except (KeyError, ValueError, OSError) as error:
            raise InvalidRequestError(
                f"{refusals.not_found('Time zone', time_zone)}. Use an IANA name, such as Europe/Zurich.", "time_zone"
            ) from error
        if len(fields) > 200 or len(fields.split()) != _FIELDS:
            raise InvalidRequestError(
                "cron must have five fields: minute, hour, day of the month, month and day of the week. For every "
                'night at three, use "0 3 * * *".',
                "cron",
            )
        try:
            CronSim(fields, datetime.now(UTC))
        except CronSimError as error:
            raise InvalidRequestError(
                f'The cron expression {fields!r} is not valid: {_said(error)}. For every night at three, use "0 3 * '
                '* *".',
                "cron",
            ) from error

    def after(self, now: float) -> Iterator[float]:
        """Its times after `now`, in seconds since 1970, increasing. Ends where the next one is fifty years away."""
        ticks = CronSim(self._fields, self._at(now))
        last = now
        for tick in ticks:
            # In the repeated hour the simulator may name the first one's times again.
            if (moment := tick.timestamp()) > last:
                last = moment
                yield moment

    def next(self, now: float) -> float:
        """Its first time after `now`. Raises InvalidRequestError when there is none."""
        found = next(self.after(now), None)
        if found is None:
            raise InvalidRequestError(
                f"The cron expression {self._fields!r} never matches a date. Correct its fields.", "cron"
            )
        return found

    def require_period(self, least_s: float, now: float) -> None:
        """Raises InvalidRequestError when two of its times within about a year are closer than `least_s`."""
        last = None
        for number, moment in enumerate(self.after(now)):
            if last is not None and moment - last < least_s:
                raise InvalidRequestError(
                    f"The times of a schedule must be at least {least_s:,.0f} s apart; two times of "
                    f"{self._fields!r} are {moment - last:,.0f} s apart.",
                    "cron",
                )
            if number >= _LOOKED_AT or moment - now > _HORIZON_S:
                return
            last = moment

    def _at(self, now: float) -> datetime:
        # Cut to whole seconds, the simulator would name the present second again.
        utc = datetime.fromtimestamp(now, UTC).replace(microsecond=0)
        return utc if self._zone.key == "UTC" else utc.astimezone(self._zone)


def _said(error: CronSimError) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def next_time(cron: Cron, now: float, done: Sequence[schedule_pb2.TimeSpan]) -> float:
    """The first time after `now` that has not made its job. Raises InvalidRequestError when there is none."""
    moment = cron.next(now)
    while (span := next((one for one in done if one.first <= moment <= one.last), None)) is not None:
        moment = cron.next(span.last)
    return moment


def note_done(cron: Cron, moment: float, schedule: schedule_pb2.Schedule) -> None:
    """Notes that the time has made its job."""
    spans = list(schedule.done)
    at = int(moment)
    before = next((span for span in spans if cron.next(span.last) == moment), None)
    if before is not None:
        spans.remove(before)
    spans.append(schedule_pb2.TimeSpan(first=before.first if before is not None else at, last=at))
    del schedule.done[:]
    schedule.done.extend(spans[-_MOST_SPANS:])
