"""Ids of jobs."""

from __future__ import annotations

import uuid

from services.scheduler.jobs.job import new_job_id

NOW = 1_795_132_800.25


def test_ids_are_uuids_of_version_7_that_tell_their_millisecond() -> None:
    made = uuid.UUID(new_job_id(NOW))
    assert (made.version, made.variant, made.int >> 80) == (7, uuid.RFC_4122, int(NOW * 1000))


def test_ids_grow_with_time_as_text_and_differ_within_a_millisecond() -> None:
    moments = [new_job_id(NOW + step) for step in (0, 0.001, 1, 3600, 10 * 365 * 86400)]
    assert moments == sorted(moments)
    assert len({new_job_id(NOW) for _ in range(1000)}) == 1000
