"""Spans of requests that start jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from google.protobuf.message import Message

from services.telemetry import traces
from touchstone.v1 import job_pb2
from touchstone.v1.scheduler_service_pb2 import (
    CreateJobResponse,
    CreateJobsResponse,
    RetryJobResponse,
    RunExperimentResponse,
)

_started: ContextVar[list[job_pb2.Job] | None] = ContextVar("jobs that the request has started", default=None)


@contextmanager
def started_jobs() -> Iterator[list[job_pb2.Job]]:
    """The jobs that are started inside the context, by this task and those that it waits for."""
    found: list[job_pb2.Job] = []
    token = _started.set(found)
    try:
        yield found
    finally:
        _started.reset(token)


def note(answer: Message) -> None:
    """Of the scheduler."""
    started = _started.get()
    if started is None:
        return
    jobs: list[job_pb2.Job] = []
    if isinstance(answer, CreateJobsResponse | RunExperimentResponse):
        jobs = list(answer.jobs)
    elif isinstance(answer, CreateJobResponse | RetryJobResponse):
        jobs = [answer.job]
    started += [job for job in jobs if job.state == job_pb2.Job.STATE_PENDING]


def trace(job: job_pb2.Job, took_s: float, method: str, route: str, status: str, caller: str) -> None:
    """A request that has just been answered; `caller` is its header traceparent."""
    ended = time.time()
    attributes: traces.Attributes = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": int(status),
    }
    name = f"{method} {route}"
    traces.add(name, job.job_id, job.attempt, ended - took_s, ended, attributes, kind=traces.SERVER, caller=caller)
