"""When schedules come due: fields, zones, clock changes, the shortest period."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.errors import InvalidRequestError
from services.scheduler.schedules.cron import Cron, next_time, note_done
from touchstone.v1 import schedule_pb2

ZURICH = "Europe/Zurich"

MINUTE, HOUR, DAY = 60.0, 3600.0, 24 * 3600.0
CRONS = ("* * * * *", "*/7 * * * *", "5 3 * * *", "0 0 * * MON", "30 2 * * *")
STEPS = st.lists(
    st.tuples(
        st.floats(1, 3 * HOUR),
        st.one_of(st.just(0.0), st.floats(-3 * DAY, 3 * DAY), st.sampled_from([HOUR, -HOUR, -1.0, DAY, -DAY])),
    ),
    min_size=1,
    max_size=12,
)


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
    with pytest.raises(InvalidRequestError, match="must be at least 3,600 s apart"):
        Cron(fields, ZURICH).require_period(3600, at("2026-11-20T10:00"))


@settings(max_examples=25, deadline=None)
@given(cron=st.sampled_from(CRONS), zone=st.sampled_from(["UTC", "Europe/Zurich"]), steps=STEPS)
def test_whatever_the_clock_does_no_time_comes_twice_and_none_is_far_away(
    cron: str, zone: str, steps: list[tuple[float, float]]
) -> None:
    """A schedule as the timetable keeps it: it looks again when the clock shows less than before."""
    times, schedule = Cron(cron, zone), schedule_pb2.Schedule()
    right, seen = 1_792_800_000.0, 0.0
    due = next_time(times, right, schedule.done)
    made: list[float] = []
    for lasts, wrong_by in [*steps, (HOUR, 0.0)]:
        end = right + lasts
        while right < end:
            now = right + wrong_by
            if now < seen:
                due = min(due, next_time(times, now, schedule.done))
            seen = now
            if due <= now:
                made.append(due)
                note_done(times, due, schedule)
                due = next_time(times, now, schedule.done)
            # Nothing happens before the next time, or the next step of the clock.
            right = min(end, max(right + 0.25, due - wrong_by))
    assert len(set(made)) == len(made)
    assert len(schedule.done) <= len(steps) * 2 + 3
    first = next_time(times, right, schedule.done)
    assert due <= first, "the clock is right, and the next time that made no job is waited for"


def test_times_that_follow_each_other_are_kept_as_one_span() -> None:
    times, schedule = Cron("*/5 * * * *", "UTC"), schedule_pb2.Schedule()
    moments = [1_792_800_000.0 + 300 * number for number in range(1, 500)]
    for moment in moments:
        note_done(times, moment, schedule)
    assert [(span.first, span.last) for span in schedule.done] == [(moments[0], moments[-1])]
    assert next_time(times, moments[0] - 1, schedule.done) == moments[-1] + 300
    assert all(later - earlier == 300 for earlier, later in pairwise(moments))
