"""When schedules come due: fields, zones, clock changes, the shortest period."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from services.errors import InvalidRequestError
from services.scheduler.cron import Cron

ZURICH = "Europe/Zurich"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def times(fields: str, zone: str, after: str, count: int = 3) -> list[str]:
    found = islice(Cron(fields, zone).after(at(after)), count)
    return [datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M") for moment in found]


def test_times_are_those_of_the_zone() -> None:
    assert times("0 3 * * *", "", "2026-11-20T10:00") == ["2026-11-21T03:00", "2026-11-22T03:00", "2026-11-23T03:00"]
    assert times("0 3 * * MON", ZURICH, "2026-11-20T10:00", 1) == ["2026-11-23T02:00"]


def test_a_time_does_not_come_after_itself() -> None:
    assert times("0 3 * * *", "", "2026-11-20T03:00", 1) == ["2026-11-21T03:00"]
    assert Cron("0 3 * * *", "").next(at("2026-11-20T02:59:59") + 0.9) == at("2026-11-20T03:00")


def test_a_time_in_an_hour_that_comes_twice_is_one_time() -> None:
    assert times("45 2 * * *", ZURICH, "2026-10-25T00:40", 2) == ["2026-10-25T00:45", "2026-10-26T01:45"]
    assert times("45 2 * * *", ZURICH, "2026-10-25T01:30", 1) == ["2026-10-26T01:45"]
    assert times("*/30 * * * *", ZURICH, "2026-10-25T00:15") == [
        "2026-10-25T00:30",
        "2026-10-25T01:00",
        "2026-10-25T01:30",
    ]


def test_a_time_in_an_hour_that_is_skipped_comes_at_its_end() -> None:
    assert times("30 2 * * *", ZURICH, "2026-03-28T12:00", 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "60 * * * *",
        "a * * * *",
        "*/0 * * * *",
        "٣ * * * *",
        "0 0 31 2 *",
        "* " * 9,
    ],
)
def test_fields_that_are_no_time_are_refused_with_an_example(fields: str) -> None:
    with pytest.raises(InvalidRequestError, match="0 3") as refused:
        Cron(fields, "")
    assert refused.value.field == "cron"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "/etc/passwd", "\0", "Europe", "z" * 5000])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(InvalidRequestError, match="IANA") as refused:
        Cron("0 3 * * *", zone)
    assert refused.value.field == "time_zone"


@pytest.mark.parametrize("fields", ["* * * * *", "0,30 0,1 * * *", "0,59 0,23 1,31 * *"])
def test_a_period_below_the_shortest_is_refused_wherever_in_the_year_it_is(fields: str) -> None:
    Cron(fields, ZURICH).require_period(60, at("2026-11-20T10:00"))
    with pytest.raises(InvalidRequestError, match="The least here is 3,600 s"):
        Cron(fields, ZURICH).require_period(3600, at("2026-11-20T10:00"))
