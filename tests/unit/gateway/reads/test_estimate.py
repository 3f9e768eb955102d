"""Guesses are said as ranges."""

from __future__ import annotations

import pytest

from services.gateway.reads.estimate import ahead_of, spoken_range, waiting_s
from touchstone.v1 import job_pb2, queue_pb2


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "under 1 minute"), (60, "1-2 minutes"), (1400, "17-35 minutes"), (9000, "1-4 hours")]
)
def test_guesses_are_said_as_ranges(seconds: float, words: str) -> None:
    assert spoken_range(seconds) == words


def queue(running: str = "", pending: str = "") -> queue_pb2.Queue:
    """A queue of three slots; each letter is a job's owner. Running jobs end in 60 seconds."""
    jobs = [job_pb2.Job(owner=owner, progress=job_pb2.Progress(eta_s=60)) for owner in running]
    return queue_pb2.Queue(slots=3, running=jobs, pending=[job_pb2.Job(owner=owner) for owner in pending])


@pytest.mark.parametrize(
    ("running", "pending", "user", "ahead"),
    [
        ("", "", "a", 0),
        ("aaa", "aaaaaaa", "a", 7),
        ("aaa", "aaaaaaa", "b", 0),
        ("aab", "babaaa", "b", 4),
        ("abc", "abcd", "d", 4),
    ],
)
def test_a_new_job_waits_for_those_whose_users_have_an_earlier_turn(
    running: str, pending: str, user: str, ahead: int
) -> None:
    assert ahead_of(queue(running, pending), user) == ahead


def test_a_job_with_none_before_it_waits_for_the_next_slot_alone() -> None:
    full = queue("aaa", "aaaaaaa")
    assert waiting_s(full, 0) == 60
    assert waiting_s(full, 7) == 60 + 2 * 60
    assert waiting_s(queue("aa"), 0) == 0
