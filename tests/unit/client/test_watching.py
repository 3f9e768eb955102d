"""What a watch does when a stream ends or breaks."""

from __future__ import annotations

import grpc
import pytest

from touchstone.v1 import job_pb2
from touchstone_client import NotFoundError, UnreachableError
from touchstone_client.watching import Watch

AWAY = UnreachableError("away", grpc.StatusCode.UNAVAILABLE)
LATE = UnreachableError("late", grpc.StatusCode.DEADLINE_EXCEEDED)
UNKNOWN = NotFoundError("unknown", grpc.StatusCode.NOT_FOUND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times = [100.0]
    monkeypatch.setattr("touchstone_client.watching.time.monotonic", lambda: times[-1])
    return times


def test_a_watch_is_over_once_its_job_is(clock: list[float]) -> None:
    watch = Watch("1", None)
    watch.heard(job_pb2.Job(state=job_pb2.Job.STATE_RUNNING))
    assert not watch.over
    watch.heard(job_pb2.Job(state=job_pb2.Job.STATE_FAILED))
    assert watch.over


def test_a_job_that_the_scheduler_has_forgotten_is_told_from_one_that_is_away(clock: list[float]) -> None:
    assert Watch("1", None).forgotten(UNKNOWN)
    assert not Watch("1", None).forgotten(AWAY)
    with pytest.raises(UnreachableError, match="late"):
        Watch("1", None).forgotten(LATE)


def test_silence_is_outlasted_for_half_a_minute_from_the_last_word(clock: list[float]) -> None:
    watch = Watch("1", None)
    assert not watch.forgotten(AWAY)
    clock.append(129.0)
    assert not watch.forgotten(AWAY)
    watch.heard(job_pb2.Job())
    clock.append(131.0)
    assert not watch.forgotten(AWAY)
    clock.append(162.0)
    with pytest.raises(UnreachableError, match="away"):
        watch.forgotten(AWAY)


def test_a_watch_ends_with_its_time(clock: list[float]) -> None:
    watch = Watch("1", 10.0)
    assert (watch.left_s(), watch.pause_s(), Watch("1", None).left_s()) == (10.0, 0.5, None)
    clock.append(109.75)
    assert watch.pause_s() == 0.25
    clock.append(110.0)
    with pytest.raises(TimeoutError, match=r"Job 1 is not finished after 10 s; it continues\."):
        watch.forgotten(AWAY)
