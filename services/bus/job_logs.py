"""What services log about a job, kept on the LOGS stream: a logging handler that never delays the work.

A line belongs to a job if it is logged with `extra=of_job(job_id)`. It goes through a bounded queue; lines that do not
fit are dropped and counted, and the count becomes a line of the job as soon as there is room.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Literal

import nats.errors

from services.bus.contract import LOG_LEVELS
from services.errors import sendable
from services.words.refusals import counted
from touchstone.v1 import scheduler_service_pb2

log = logging.getLogger(__name__)

Level = Literal["info", "warning", "error"]
Publish = Callable[[str, str, bytes], Awaitable[None]]
"""Stores a line, given job id, level and serialised LogLine."""

_LOGGER = "services"
_MOST_WAITING = 1000
_MOST_TEXT = 2000
_AGAIN_S = 0.5
_LEAVE_S = 2.0
_USER_OF_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def of_job(job_id: str) -> dict[str, str]:
    """`extra` of a log call whose line belongs to a job."""
    return {"job_id": job_id}


class JobLogHandler(logging.Handler):
    """Takes lines from any thread. `source` names service and instance; `secrets` read "[key]" where they occur."""

    def __init__(self, source: str, secrets: Collection[str] = (), most_waiting: int = _MOST_WAITING) -> None:
        super().__init__(logging.INFO)
        self._source = source
        # The longest first: one may be a part of another.
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[str, scheduler_service_pb2.LogLine]] = deque()
        self._dropped: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._ending = False

    def emit(self, record: logging.LogRecord) -> None:
        job_id = getattr(record, "job_id", "")
        if not job_id:
            return
        try:
            self._take(job_id, self._line(job_id, record))
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            return  # The loop has ended, and the process with it.
        except Exception:
            self.handleError(record)

    def _take(self, job_id: str, line: scheduler_service_pb2.LogLine) -> None:
        if len(self._waiting) >= self._most_waiting:
            self._dropped[job_id] += 1
        else:
            self._waiting.append((job_id, line))

    def _line(self, job_id: str, record: logging.LogRecord) -> scheduler_service_pb2.LogLine:
        text = record.getMessage().removeprefix(f"job {job_id}: ")
        if record.exc_info and record.exc_info[1] is not None:
            # The trace stays in the service's own log.
            text = f"{text} ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        line = scheduler_service_pb2.LogLine(
            level=_level(record.levelno),
            source=self._source,
            text=sendable(self._masked(" ".join(text.split()))[:_MOST_TEXT]),
        )
        line.logged_at.FromNanoseconds(int(record.created * 1e9))
        return line

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return _USER_OF_URL.sub("[key]", text)

    async def run(self, publish: Publish) -> None:
        """Stores lines in their order until `end` is called. While NATS is away, as many wait as the queue holds."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                job_id, line = self._waiting[0]
                await _until_stored(publish, job_id, line)
                self._waiting.popleft()
                self._tell_dropped()
            if self._ending:
                return

    def _tell_dropped(self) -> None:
        """Lines may have been dropped by any thread meanwhile; each count is reported once."""
        for job_id in list(self._dropped):
            count = self._dropped.pop(job_id, 0)
            line = scheduler_service_pb2.LogLine(
                level="warning",
                source=self._source,
                text=f"{counted(count, 'line')} dropped, as lines came faster than they could be stored.",
            )
            line.logged_at.GetCurrentTime()
            self._waiting.append((job_id, line))

    def end(self) -> None:
        """`run` returns once the waiting lines are stored."""
        self._ending = True
        self._news.set()


async def _until_stored(publish: Publish, job_id: str, line: scheduler_service_pb2.LogLine) -> None:
    while True:
        try:
            await publish(job_id, line.level, line.SerializeToString())
        except (nats.errors.Error, OSError, TimeoutError) as error:
            log.debug("storing a log line is delayed: %s", error or type(error).__name__)
            await asyncio.sleep(_AGAIN_S)
        else:
            return


def _level(number: int) -> Level:
    if number >= logging.ERROR:
        return "error"
    return "warning" if number >= logging.WARNING else "info"


def levels_from(level: str) -> tuple[str, ...]:
    """The level and those above it; all for an empty one. Raises ValueError for an unknown one."""
    return LOG_LEVELS[LOG_LEVELS.index(level) if level else 0 :]


@asynccontextmanager
async def job_logs(publish: Publish, source: str, secrets: Collection[str] = ()) -> AsyncIterator[None]:
    """Stores what this process logs about jobs inside the context; lines that still wait at its end have two
    seconds."""
    handler = JobLogHandler(source, secrets)
    logger = logging.getLogger(_LOGGER)
    logger.addHandler(handler)
    storing = asyncio.create_task(handler.run(publish))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.end()
        await asyncio.wait({storing}, timeout=_LEAVE_S)
        while not storing.done():
            # More than once: before Python 3.12 nats-py may lose a cancellation that comes with an answer.
            storing.cancel()
            await asyncio.wait({storing}, timeout=0.5)
