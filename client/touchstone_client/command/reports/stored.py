"""Waits until what ended is stored. The results service hears of the end of jobs a moment after the scheduler. In
between, its answers leave out a part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import grpc

from services.words.jobs import is_finished
from touchstone.v1 import decision_pb2, job_pb2
from touchstone_client.client import Client
from touchstone_client.errors import NotFoundError, UnreachableError

T = TypeVar("T")

_HEARD_S, _LOOK_S = 20.0, 0.1


def until_stored(client: Client, jobs: Iterable[job_pb2.Job]) -> None:
    """Returns once the results service has these finished jobs as they ended, or later attempts of them. Raises
    UnreachableError after 20 s."""
    for job in jobs:

        def ask(ended: job_pb2.Job = job) -> bool:
            stored = client.stored_job(ended.job_id)
            return (stored.attempt, is_finished(stored)) >= (ended.attempt, True)

        _until(ask, f"the end of job {job.job_id}")


def ended_decision(client: Client, decision_id: str) -> decision_pb2.Decision:
    """A decision whose jobs have ended, once the results service knows that they have. Raises UnreachableError after
    20 s."""

    def ask() -> decision_pb2.Decision | None:
        found = client.decision(decision_id)
        return found if found.HasField("saved") else None

    return _until(ask, f"the end of decision {decision_id}")


def _until(ask: Callable[[], T | None], what: str) -> T:
    """The first true answer. What is not found is not stored yet."""
    until = time.monotonic() + _HEARD_S
    while True:
        with suppress(NotFoundError):
            if found := ask():
                return found
        if time.monotonic() > until:
            raise UnreachableError(
                f"The results service has not stored {what} after {_HEARD_S:g} s. Ask again later.",
                grpc.StatusCode.UNAVAILABLE,
            )
        time.sleep(_LOOK_S)
