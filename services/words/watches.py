"""What a watch says, in words, and which items a run of it asks. Pure."""

from __future__ import annotations

from touchstone.v1 import job_pb2, watch_pb2

DEFAULT_ITEMS, MOST_ITEMS = 30, 100
"""Canaries of each run."""
DEFAULT_ERROR, MOST_ERROR = 0.01, 0.2
DAILY = "0 6 * * *"
"""The usual cron expression."""

_RAISED = {
    watch_pb2.WATCH_SIGNAL_SCORE: "its answers are {change} than those of the reference",
    watch_pb2.WATCH_SIGNAL_ANSWERS: "its answers differ from the reference more often than chance explains",
    watch_pb2.WATCH_SIGNAL_TEXT: "its texts differ from the reference more often than chance explains",
}


def said(watch: watch_pb2.Watch) -> str:
    """What a watch shows, as a sentence."""
    if watch.note:
        return watch.note
    if not watch.raised_by:
        return "No change is shown." if watch.asked else "No canary is answered yet."
    change = "worse" if _moved(watch) < 0 else "better"
    return f"This is not the model of the reference any more: {_RAISED[watch.raised_by].format(change=change)}."


def _moved(watch: watch_pb2.Watch) -> float:
    """By how much scores had changed when the alarm was raised; those of later runs may be otherwise."""
    later = {run.job_id for run in watch.runs if run.finished_at.ToNanoseconds() > watch.raised_at.ToNanoseconds()}
    until_then = [one for one in watch.changes if one.job_id not in later]
    return sum(one.score_now - one.score_before for one in until_then) or watch.mean - watch.reference_mean


def canary_rows(spec: job_pb2.JobSpec) -> dict[str, list[int]] | None:
    """By task, the numbers of its rows in increasing order; None for other jobs."""
    if not spec.HasField("watching"):
        return None
    found: dict[str, list[int]] = {}
    for canary in spec.watching.canaries:
        found.setdefault(canary.task, []).append(canary.item)
    return {task: sorted(rows) for task, rows in found.items()}
