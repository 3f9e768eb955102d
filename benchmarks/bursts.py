"""How reads fare in cold bursts while jobs start and other programs load the machine."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from benchmarks import report
from benchmarks.report import Finding
from tests.stack import API, Stack

READERS = 40
BUSY_LOOPS = 2
ROUNDS = 4
"""Bursts of each kind. Every reader asks each question once in a burst."""
OVERLOAD_S, RECOVERY_S = 20.0, 10.0
_MODELS = ("majority", "random", "bag-of-words")
_CALL_TIMEOUT_S = 3


@dataclass
class _Answers:
    """Statuses, seconds of those that were 200, and refusals without Retry-After."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    silent: int = 0
    lasted: float = 0.0

    def findings(self, name: str) -> list[Finding]:
        every = self.statuses.total()
        refused = every - self.statuses[200]
        told = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        print(f"  {name}: {told}; {self.silent} of them without Retry-After", flush=True)
        if not self.seconds:
            return [report.at_most(f"{name}, refused", 100 * refused / every, "%", 0)]
        ordered = sorted(1e3 * one for one in self.seconds)
        return [
            report.at_most(f"{name}, refused without Retry-After", self.silent, "answers", 0),
            report.shown(f"{name}, refused", 100 * refused / every, "%"),
            report.shown(f"{name}, answered", self.statuses[200] / self.lasted, "answers/s"),
            report.shown(f"{name}, median", statistics.median(ordered), "ms"),
            report.shown(f"{name}, 95th percentile", ordered[int(0.95 * len(ordered))], "ms"),
        ]


def bursts(folder: Path) -> list[Finding]:
    """Of one installation with some finished jobs: bursts of equal and of different reads, then an overload and what is
    left of it afterwards."""
    on = Stack(folder / "stack", [], environment={"TOUCHSTONE_CALL_TIMEOUT_S": str(_CALL_TIMEOUT_S)}).start()
    try:
        jobs = [on.run("baseline", model, "demo") for model in _MODELS for _ in range(3)]
        for job_id in jobs:
            on.completed(job_id)
        findings = []
        for name, busy in (("quiet", 0), ("loaded", BUSY_LOOPS)):
            with _busy(busy), _starting(on):
                for kind, paths in (("equal reads", _equal(jobs)), ("different reads", _different(jobs))):
                    answers = asyncio.run(_bursts(on.url, paths))
                    findings += answers.findings(f"{name}, {kind}")
        with _busy(BUSY_LOOPS), _starting(on):
            overload = asyncio.run(_endless(on.url, _different(jobs), 4 * READERS, OVERLOAD_S))
        findings += overload.findings("overload")
        after = asyncio.run(_endless(on.url, _different(jobs), READERS // 2, RECOVERY_S))
        return findings + after.findings("after the overload")
    finally:
        on.stop()


def _equal(jobs: Sequence[str]) -> Iterator[str]:
    questions = ("/leaderboard?suite=demo", "/overview?suite=demo&days=30", f"/results/{jobs[0]}/items?limit=50")
    for question in itertools.cycle(questions):
        yield from itertools.repeat(question, READERS)


def _different(jobs: Sequence[str]) -> Iterator[str]:
    for number in itertools.count(1):
        job = jobs[number % len(jobs)]
        yield f"/leaderboard?suite=demo&limit={number % 90 + 1}"
        yield f"/overview?suite=demo&days={number % 300 + 1}"
        yield f"/results?suite=demo&limit={number % 90 + 1}"
        yield f"/history?days={number % 300 + 1}"
        yield f"/results/{job}/items?limit={number % 90 + 1}"
        yield f"/results/{job}"


async def _bursts(url: str, paths: Iterator[str]) -> _Answers:
    answers = _Answers()
    async with _session(url) as session:
        for _ in range(ROUNDS):
            started = time.monotonic()
            await asyncio.gather(*(_ask(session, path, answers) for path in itertools.islice(paths, 3 * READERS)))
            answers.lasted += time.monotonic() - started
            await asyncio.sleep(0.5)
    return answers


async def _endless(url: str, paths: Iterator[str], readers: int, lasts: float) -> _Answers:
    answers = _Answers()
    ends = time.monotonic() + lasts

    async def reader(session: aiohttp.ClientSession) -> None:
        while time.monotonic() < ends:
            await _ask(session, next(paths), answers)

    async with _session(url) as session:
        started = time.monotonic()
        await asyncio.gather(*(reader(session) for _ in range(readers)))
        answers.lasted = time.monotonic() - started
    return answers


def _session(url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        base_url=url, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=60)
    )


async def _ask(session: aiohttp.ClientSession, path: str, answers: _Answers) -> None:
    started = time.perf_counter()
    async with session.get(API + path) as answer:
        await answer.read()
        answers.statuses[answer.status] += 1
        if answer.status == 200:
            answers.seconds.append(time.perf_counter() - started)
        elif "Retry-After" not in answer.headers:
            answers.silent += 1


@contextmanager
def _starting(on: Stack) -> Iterator[None]:
    """Jobs that start meanwhile; they are finished when this returns."""
    started = [on.run("baseline", _MODELS[number % 3], "demo") for number in range(9)]
    yield
    for job_id in started:
        on.wait(job_id, 300)


@contextmanager
def _busy(loops: int) -> Iterator[None]:
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(loops)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _spin() -> None:
    while True:
        pass
