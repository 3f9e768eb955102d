"""Asking the results service, which may be down for long: nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.bus import of_job
from services.errors import DeadlineError, TouchstoneError, UnavailableError
from services.scheduler.jobs.job import Job

log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 5.0
_FAILURES = 5
"""So often in a row the service may fail at an answer. One that fails for a moment, by its memory or its disk, must not
cost a job; one that fails each time would hold the job for ever."""


async def until_answered(job: Job, wanted: Callable[[], bool], ask: Callable[[], Awaitable[T]]) -> T | None:
    """The answer to a question about a job; None when it is not wanted any more. Raises what the service refuses with,
    and its own failure when that is the answer each time.

    A long silence is one line of the job's log.
    """
    pause, failures = _FIRST_PAUSE_S, 0
    while wanted():
        try:
            return await ask()
        except TouchstoneError as error:
            # An error of no kind is one that the service did not foresee.
            failures = failures + 1 if type(error) is TouchstoneError else 0
            if failures >= _FAILURES or not (failures or isinstance(error, UnavailableError | DeadlineError)):
                raise
            extra = of_job(job.id) if pause == _FIRST_PAUSE_S else None
            log.warning("job %s: waits for the results service: %s", job.id, error.message, extra=extra)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_PAUSE_S)
    return None
