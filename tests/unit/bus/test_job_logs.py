"""The handler behind jobs' logs: what it takes, masks and drops."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import nats.errors
import pytest

from services import bus
from services.bus.job_logs import JobLogHandler
from touchstone.v1.scheduler_service_pb2 import LogLine

JOB = "8c3c7d2e"


class Stream:
    """`away` makes it refuse; `slow` hold every line until it is let go."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, LogLine]] = []
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def publish(self, job_id: str, level: str, line: bytes) -> None:
        await self.gate.wait()
        if self.away:
            raise nats.errors.ConnectionClosedError
        self.lines.append((job_id, level, LogLine.FromString(line)))

    @property
    def texts(self) -> list[str]:
        return [line.text for _, _, line in self.lines]


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("services.test")
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(logging.NOTSET)


async def test_lines_of_jobs_are_stored_at_the_end_at_the_latest(log: logging.Logger) -> None:
    stream = Stream()
    async with bus.job_logs(stream.publish, "evaluator e1"):
        log.info("job %s: running", JOB, extra=bus.of_job(JOB))
        log.info("of no job")
        log.debug("too fine", extra=bus.of_job(JOB))
        log.warning("two\n  lines", extra=bus.of_job(JOB))
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("it broke", extra=bus.of_job(JOB))
    log.info("too late", extra=bus.of_job(JOB))
    assert [(job, level, line.source, line.text) for job, level, line in stream.lines] == [
        (JOB, "info", "evaluator e1", "running"),
        (JOB, "warning", "evaluator e1", "two lines"),
        (JOB, "error", "evaluator e1", "it broke (ValueError: bad)"),
    ]


async def test_keys_and_users_of_urls_are_masked(log: logging.Logger) -> None:
    stream = Stream()
    async with bus.job_logs(stream.publish, "e", ["sk-1", "sk-12345", ""]):
        log.info("key sk-12345 at nats://token@host:1 and https://a:b@c/d@e", extra=bus.of_job(JOB))
    assert stream.texts == ["key [key] at nats://[key]@host:1 and https://[key]@c/d@e"]


async def test_what_comes_too_fast_is_dropped_and_counted_and_holds_nobody_up(log: logging.Logger) -> None:
    stream = Stream()
    stream.gate.clear()
    handler = JobLogHandler("e", most_waiting=10)
    log.addHandler(handler)
    storing = asyncio.create_task(handler.run(stream.publish))
    for number in range(100):
        log.info("line %d", number, extra=bus.of_job(JOB))
    log.removeHandler(handler)
    stream.gate.set()
    handler.end()
    await asyncio.wait_for(storing, 60)
    assert stream.texts[:1] == ["line 0"]
    kept = sum(text.startswith("line") for text in stream.texts)
    (told,) = [text for text in stream.texts if "dropped" in text]
    assert told == f"{100 - kept} lines dropped, as lines came faster than they could be stored."
    assert kept == 10


async def test_lines_wait_while_nats_is_away(log: logging.Logger) -> None:
    stream = Stream()
    stream.away = True
    async with bus.job_logs(stream.publish, "e"):
        log.info("patience", extra=bus.of_job(JOB))
        await asyncio.sleep(0.05)
        assert stream.texts == []
        stream.away = False
        async with asyncio.timeout(60):
            while not stream.texts:  # noqa: ASYNC110 - the handler tries again by its own clock
                await asyncio.sleep(0.05)


async def test_threads_log_too(log: logging.Logger) -> None:
    stream = Stream()
    async with bus.job_logs(stream.publish, "e"):
        threads = [
            threading.Thread(target=log.info, args=("from a thread",), kwargs={"extra": bus.of_job(JOB)})
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stream.texts == ["from a thread"] * 5


def test_a_level_holds_the_graver_ones() -> None:
    assert bus.levels_from("") == bus.levels_from("info") == ("info", "warning", "error")
    assert bus.levels_from("error") == ("error",)
    with pytest.raises(ValueError, match="not in"):
        bus.levels_from("debug")
