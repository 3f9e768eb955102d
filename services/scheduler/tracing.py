"""Spans of what happens to a job: waiting, planning, running and scoring, and the whole attempt at its end."""

from __future__ import annotations

import math

from services.scheduler.jobs.job import COMPLETED, Job, seconds
from services.telemetry import traces
from services.words.jobs import FINISHED, status_of, suite_of


def trace(job: Job, action: str, before_s: float, now: float) -> None:
    """After a change by this name is stored. `before_s` is the time of the job's change before, 0 for none; `now` of
    this one. Both in seconds since 1970."""
    if not traces.on():
        return
    message = job.message
    attempt = message.attempt
    match action:
        case "planning":
            ended, began = "waiting", job.waiting_since
        case "running":
            ended, began = "planning", job.planning_since if math.isfinite(job.planning_since) else before_s
        case "finalizing":
            ended, began = "running", seconds(message.attempt_started_at)
        case "completed":
            ended, began = "scoring", before_s
        case _:
            ended, began = "", 0.0
    if ended:
        traces.add(ended, job.id, attempt, began, now, {})
    if job.state in FINISHED and action == status_of(job.state):
        began = seconds(message.created_at) if attempt == 1 else job.waiting_since
        failed = "" if job.state == COMPLETED else status_of(job.state)
        traces.add("job", job.id, attempt, began, now, _of(job), own=traces.WHOLE, under=None, failed=failed)


def _of(job: Job) -> traces.Attributes:
    spec, progress = job.message.spec, job.message.progress
    return {
        "touchstone.job_id": job.id,
        "touchstone.attempt": job.message.attempt,
        "touchstone.status": status_of(job.state),
        "touchstone.endpoint": spec.endpoint,
        "touchstone.suite": suite_of(spec),
        "touchstone.items": progress.items_done,
        "touchstone.items_failed": progress.items_failed,
        "gen_ai.request.model": spec.model,
        "gen_ai.usage.output_tokens": progress.output_tokens,
    }
