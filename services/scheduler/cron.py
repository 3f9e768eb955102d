"""When a schedule comes due. Pure: the caller brings the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from services.errors import InvalidRequestError

_FIELDS = 5
_LOOKED_AT = 1000
_HORIZON_S = 400 * 24 * 3600.0


class Cron:
    """Five cron fields in a time zone. In an hour that a clock change skips or repeats, Debian cron's rules hold.

    Raises InvalidRequestError for fields or a zone that are none.
    """

    def __init__(self, fields: str, time_zone: str) -> None:
        self._fields = fields
        try:
            self._zone = ZoneInfo(time_zone or "UTC")
        except (KeyError, ValueError, OSError) as error:
            raise InvalidRequestError(
                f"No time zone is named {time_zone[:80]!r}. Give an IANA name, such as Europe/Zurich.", "time_zone"
            ) from error
        if len(fields) > 200 or len(fields.split()) != _FIELDS:
            raise InvalidRequestError(
                "cron may have five fields: minute, hour, day of the month, month, day of the week. "
                'Every night at three is "0 3 * * *".',
                "cron",
            )
        try:
            CronSim(fields, datetime.now(UTC))
        except CronSimError as error:
            raise InvalidRequestError(
                f'cron is {fields!r}: {_said(error)}. Every night at three is "0 3 * * *".', "cron"
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
            raise InvalidRequestError(f"cron is {self._fields!r}, which no day ever is. Correct its fields.", "cron")
        return found

    def require_period(self, least_s: float, now: float) -> None:
        """Raises InvalidRequestError when two of its times within a year or so are nearer than `least_s`."""
        last = None
        for number, moment in enumerate(self.after(now)):
            if last is not None and moment - last < least_s:
                raise InvalidRequestError(
                    f"cron is {self._fields!r}: two of its times are {moment - last:,.0f} s apart. The least here is "
                    f"{least_s:,.0f} s.",
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
