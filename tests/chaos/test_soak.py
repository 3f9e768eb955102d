"""Half an hour of everything users do, and ten minutes of too much: memory stays flat, and goodput returns by itself.

`make nightly` runs these; SOAK_S and OVERLOAD_S shorten them by hand.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests import chat_lines
from tests.chaos.clients import Client, Memory
from tests.chaos.launched import SERVICES
from tests.chaos.world import World, open_world
from tests.parts import NIGHTLY
from tests.servers.webhook_receiver import receiving
from tests.stack import API

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not NIGHTLY and "SOAK_S" not in os.environ, reason="takes 45 minutes: make nightly"),
]

SOAK_S = float(os.environ.get("SOAK_S", "1800"))
OVERLOAD_S = float(os.environ.get("OVERLOAD_S", "600"))
SAMPLE_S = 5.0
MOST_GROWTH = 0.15
"""Of a process' memory, over the time after the first third, in which caches fill."""
SLACK_MB = 15.0
READERS, FEW_READERS, MEASURE_S, BACK_S = 60, 4, 15.0, 30.0
_READS = ("/results", "/history", "/leaderboard?suite=glue", "/overview", "/queue", "/suites")


async def test_memory_of_every_process_stays_flat(tmp_path: Path) -> None:
    memory = Memory()
    room = open_world(tmp_path, TOUCHSTONE_REQUESTS_PER_MINUTE="1000000")
    async with receiving() as receiver, room as world:
        known = {question.prompt: question.answer for question in world.questions}
        world.model.behaviour.answer = lambda prompt: known.get(prompt) or chat_lines.answer(prompt)
        clients = [Client(world.launched.page_url, number, memory, f"{receiver.url}/ok") for number in range(2)]
        over = asyncio.Event()
        working = [asyncio.create_task(client.work(over)) for client in clients]
        samples: list[tuple[float, dict[str, float]]] = []
        try:
            began = time.monotonic()
            while (elapsed := time.monotonic() - began) < SOAK_S:
                samples.append((elapsed, {name: resident_mb(world, name) for name in SERVICES}))
                # The stub remembers each call: that is its memory, and not what is measured.
                world.model.records.clear()
                await asyncio.sleep(SAMPLE_S)
            over.set()
            await asyncio.gather(*working)
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            for client in clients:
                await client.close()
    print(f"\n{SOAK_S:g} s of {dict(sorted(memory.done.items()))}")
    late = samples[len(samples) // 3 :]
    grown = []
    for name in SERVICES:
        times, sizes = [at for at, _ in late], [sizes[name] for _, sizes in late]
        slope = statistics.linear_regression(times, sizes).slope
        growth = slope * (times[-1] - times[0])
        # Growth that slows down is a cache that fills.
        quarters = [sizes[len(sizes) * i // 4 : len(sizes) * (i + 1) // 4] for i in range(4)]
        parts = [statistics.mean(quarter) for quarter in quarters]
        print(
            f"  {name:12} {slope * 3600:+7.1f} MB per hour; by quarters {', '.join(f'{part:.1f}' for part in parts)} MB"
        )
        if growth > MOST_GROWTH * statistics.mean(sizes) + SLACK_MB:
            grown.append(f"{name} grew by {growth:.1f} MB")
    assert memory.problems == []
    assert grown == []


async def test_goodput_returns_by_itself_after_an_overload(tmp_path: Path) -> None:
    async with open_world(tmp_path, TOUCHSTONE_REQUESTS_PER_MINUTE="1000000") as world:
        world.model.behaviour.latency_s = 0.2
        job_ids = [await world.submit("stub-0", ["rte"], limit=100) for _ in range(3)]
        before = await goodput(world, FEW_READERS, MEASURE_S, job_ids)
        during = await goodput(world, READERS, OVERLOAD_S, job_ids)
        await asyncio.sleep(BACK_S)
        after = await goodput(world, FEW_READERS, MEASURE_S, job_ids)
        print(f"\ngood answers per second, and all by status: before {before}, under load {during}, after {after}")
        assert after[0] > 0.6 * before[0]
        assert set(after[1]) == {200}
        assert during[1].keys() <= {200, 503}


async def goodput(world: World, readers: int, seconds: float, job_ids: list[str]) -> tuple[float, Counter[int]]:
    """Answers with 200 per second of so many readers, each with one question at a time, and all answers by status."""
    statuses: Counter[int] = Counter()
    paths = itertools.cycle([*_READS, *(f"/results/{job_id}/items?limit=20" for job_id in job_ids)])
    until = time.monotonic() + seconds

    async def read(client: httpx.AsyncClient) -> None:
        while time.monotonic() < until:
            answer = await client.get(API + next(paths))
            statuses[answer.status_code] += 1
            if answer.status_code == 503:
                assert "Retry-After" in answer.headers

    limits = httpx.Limits(max_connections=readers)
    url = world.launched.page_url
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, limits=limits) as client:
        await asyncio.gather(*(read(client) for _ in range(readers)))
    return round(statuses[200] / seconds, 1), statuses


def resident_mb(world: World, name: str) -> float:
    """Resident memory of a process of the installation, in MB of 1,000,000 bytes."""
    pid = world.launched.pid(name)
    assert pid is not None, f"{name} does not run"
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
