"""Asking the results service, which may be down for long: nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.bus import of_job
from services.errors import DeadlineError, UnavailableError
from services.scheduler.job import Job

log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 5.0


async def until_answered(job: Job, wanted: Callable[[], bool], ask: Callable[[], Awaitable[T]]) -> T | None:
    """The answer to a question about a job; None when it is not wanted any more. Raises what the service refuses with.

    A long silence is one line of the job's log.
    """
    pause = _FIRST_PAUSE_S
    while wanted():
        try:
            return await ask()
        except (UnavailableError, DeadlineError) as error:
            extra = of_job(job.id) if pause == _FIRST_PAUSE_S else None
            log.warning("job %s: waits for the results service: %s", job.id, error.message, extra=extra)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_PAUSE_S)
    return None
