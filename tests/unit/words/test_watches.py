"""What a watch says."""

from __future__ import annotations

from services.words import watches
from touchstone.v1 import watch_pb2


def test_an_alarm_says_in_which_direction_it_was_raised_whatever_came_later() -> None:
    watch = watch_pb2.Watch(raised_by=watch_pb2.WATCH_SIGNAL_SCORE, asked=60, mean=0.9, reference_mean=0.8)
    watch.raised_at.FromSeconds(100)
    for job_id, ended, now in (("one", 100, 0.0), ("two", 200, 1.0), ("three", 300, 1.0)):
        watch.runs.add(job_id=job_id).finished_at.FromSeconds(ended)
        watch.changes.add(job_id=job_id, score_before=1 - now, score_now=now)
    assert "its answers are worse than those of the reference" in watches.said(watch)
    del watch.changes[:]
    assert "its answers are better than those of the reference" in watches.said(watch)
