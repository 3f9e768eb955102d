"""The items that a run of a watch asks, in place of those that a limit selects."""

from __future__ import annotations

from touchstone.v1 import job_pb2


def canary_rows(spec: job_pb2.JobSpec) -> dict[str, list[int]] | None:
    """By task, the numbers of its rows in increasing order; None for other jobs."""
    if not spec.HasField("watching"):
        return None
    found: dict[str, list[int]] = {}
    for canary in spec.watching.canaries:
        found.setdefault(canary.task, []).append(canary.item)
    return {task: sorted(rows) for task, rows in found.items()}
