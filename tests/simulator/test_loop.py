"""The loop's time, its order, and what a killed process may still do: nothing."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.simulator import worlds
from tests.simulator.loop import SimLoop, SimulationError


def test_time_jumps_to_the_next_timer() -> None:
    async def main(loop: SimLoop, chance: Random) -> float:
        began = loop.time()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        return loop.time() - began

    assert worlds.run(1, main, most_time=10_000) == pytest.approx(7200, abs=0.01)


def test_a_killed_process_does_nothing_any_more() -> None:
    done: list[str] = []

    async def victim() -> None:
        try:
            await asyncio.sleep(1)
            done.append("worked")
        finally:
            done.append("tidied")

    async def main(loop: SimLoop, chance: Random) -> None:
        process, _ = loop.spawn("victim", victim)
        await asyncio.sleep(0.5)
        loop.kill(process)
        await asyncio.sleep(5)
        assert done == []

    worlds.run(1, main)


def test_a_process_can_be_killed_at_each_of_its_steps() -> None:
    def steps_until(crash_at: int | None) -> int:
        count = 0

        async def counting() -> None:
            nonlocal count
            for _ in range(10):
                await asyncio.sleep(0.1)
                count += 1

        async def main(loop: SimLoop, chance: Random) -> None:
            process, _ = loop.spawn("counting", counting)
            process.crash_at = crash_at
            await asyncio.sleep(5)

        worlds.run(1, main)
        return count

    assert steps_until(None) == 10
    # Each sleep takes two steps: the timer and the task that it wakes.
    assert [steps_until(at) for at in range(1, 8)] == [0, 0, 0, 1, 1, 2, 2]


def test_a_frozen_process_goes_on_where_it_was() -> None:
    seen: list[float] = []

    async def ticking() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen.append(round(asyncio.get_running_loop().time() - 1000))

    async def main(loop: SimLoop, chance: Random) -> None:
        process, _ = loop.spawn("ticking", ticking)
        await asyncio.sleep(1.5)
        loop.freeze(process, 5)
        await asyncio.sleep(20)

    worlds.run(1, main)
    assert seen == [1, 6, 8] or seen == [1, 7, 8]


def test_the_order_within_a_process_is_kept() -> None:
    for seed in range(20):
        order: list[int] = []

        async def main(loop: SimLoop, chance: Random, order: list[int] = order) -> None:
            async def each() -> None:
                for number in range(5):
                    loop.call_soon(order.append, number)

            loop.spawn("each", each)
            loop.spawn("other", each)
            await asyncio.sleep(1)

        worlds.run(seed, main)
        firsts = [at for at, number in enumerate(order) if number == 0]
        assert len(order) == 10
        assert len(firsts) == 2


def test_a_busy_loop_is_found() -> None:
    async def main(loop: SimLoop, chance: Random) -> None:
        while True:  # noqa: ASYNC110 - it is what is to be found
            await asyncio.sleep(0)

    with pytest.raises(SimulationError, match="no rest"):
        worlds.run(1, main, most_steps=1000)


def test_waiting_for_ever_is_found() -> None:
    async def main(loop: SimLoop, chance: Random) -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationError, match="waits for ever"):
        worlds.run(1, main)
