"""Who is in memory when: with residents that are only counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.evaluator.engine.model_residency import Residency


class Resident:
    def __init__(self, world: World, model: str) -> None:
        self.model = model
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._world = world

    async def stop(self) -> None:
        await asyncio.sleep(0.005)
        if not self.ended.done():
            self.ended.set_result("was stopped")
        self._world.alive.remove(self)


class World:
    """Starts residents and notes which were alive at once."""

    def __init__(self, start_s: float = 0.005, **options: float) -> None:
        self.alive: list[Resident] = []
        self.started: list[str] = []
        self.most_alive = 0
        self.served: list[str] = []
        self.broken = ""
        self.start_s = start_s
        self.residency: Residency[Resident] = Residency(self.start, **options)

    async def start(self, model: str) -> Resident:
        self.started.append(model)
        await asyncio.sleep(self.start_s)
        if model == self.broken:
            raise ValueError(model)
        resident = Resident(self, model)
        self.alive.append(resident)
        self.most_alive = max(self.most_alive, len(self.alive))
        return resident

    async def call(self, model: str, seconds: float = 0.002) -> None:
        async with self.residency.lease(model) as resident:
            assert self.alive == [resident]
            assert resident.model == model
            await asyncio.sleep(seconds)
            assert not resident.ended.done()
            self.served.append(model)


@asynccontextmanager
async def world(start_s: float = 0.005, **options: float) -> AsyncIterator[World]:
    made = World(start_s, **options)
    async with asyncio.timeout(120):
        yield made
        await made.residency.close()
    assert made.alive == []


async def test_calls_for_the_resident_model_run_together() -> None:
    async with world() as w:
        meeting = asyncio.Barrier(20)

        async def call() -> None:
            async with w.residency.lease("a"):
                await meeting.wait()

        await asyncio.gather(*(call() for _ in range(20)))
        assert w.started == ["a"]
        assert w.residency.model == "a"


async def test_two_models_are_never_resident_at_once_however_calls_are_mixed() -> None:
    async with world() as w:
        calls = [w.call(model) for _ in range(20) for model in ("a", "b", "c")]
        await asyncio.gather(*calls)
        assert w.most_alive == 1
        assert sorted(w.served) == sorted(["a", "b", "c"] * 20)


async def test_mixed_calls_that_wait_together_load_each_model_once() -> None:
    async with world() as w:
        await asyncio.gather(*(w.call(model) for _ in range(10) for model in ("a", "b")))
        assert w.started == ["a", "b"]


async def test_a_switch_waits_for_the_calls_in_flight() -> None:
    async with world() as w:
        first = asyncio.create_task(w.call("a", 0.15))
        await asyncio.sleep(0.03)
        await w.call("b")
        assert first.done()
        assert w.served == ["a", "b"]


async def test_a_slot_that_goes_from_call_to_call_keeps_its_model_while_another_waits() -> None:
    async with world() as w:
        await w.call("a")
        other = asyncio.create_task(w.call("b"))
        for _ in range(5):
            await w.call("a", 0.01)
            await asyncio.sleep(0.01)
        await other
        assert w.started == ["a", "b"]


async def test_a_stream_of_calls_for_the_resident_model_does_not_starve_the_other() -> None:
    async with world(patience_s=0.2) as w:
        streaming = True

        async def stream() -> None:
            while streaming:
                await w.call("a", 0.01)

        streams = [asyncio.create_task(stream()) for _ in range(4)]
        await asyncio.sleep(0.05)
        await w.call("b")
        assert "b" in w.served
        streaming = False
        await asyncio.gather(*streams)


async def test_two_streams_share_by_turns_that_last_as_long_as_loading() -> None:
    async with world(start_s=0.1, patience_s=0.0) as w:
        until = asyncio.get_running_loop().time() + 1.0

        async def stream(model: str) -> None:
            while asyncio.get_running_loop().time() < until:
                await w.call(model, 0.005)

        await asyncio.gather(*(stream(model) for model in ("a", "b") for _ in range(3)))
        assert set(w.served) == {"a", "b"}
        assert len(w.started) <= 8


async def test_who_starts_a_model_that_fails_gets_the_error_and_others_are_served() -> None:
    async with world() as w:
        w.broken = "a"
        with pytest.raises(ValueError, match="a"):
            await w.call("a")
        await w.call("b")
        assert w.served == ["b"]


async def test_a_model_that_ended_is_started_again_for_the_next_call() -> None:
    async with world() as w:
        await w.call("a")
        w.alive[0].ended.set_result("crashed")
        assert w.residency.model == ""
        await w.call("a")
        assert w.started == ["a", "a"]


async def test_a_start_that_nobody_waits_for_any_more_is_given_up() -> None:
    async with world(start_s=3600) as w:
        waiting = asyncio.create_task(w.call("a"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        w.start_s = 0.001
        await w.call("b")
        assert w.served == ["b"]


async def test_a_cancelled_call_leaves_its_place() -> None:
    async with world() as w:
        running = asyncio.create_task(w.call("a", 30))
        await asyncio.sleep(0.02)
        waiting = asyncio.create_task(w.call("b"))
        await asyncio.sleep(0.02)
        running.cancel()
        await waiting
        assert w.served == ["b"]


async def test_an_idle_model_is_stopped_after_its_time_and_started_when_it_is_called() -> None:
    async with world(idle_stop_s=0.1) as w:
        await w.call("a")
        await asyncio.sleep(0.05)
        assert w.residency.model == "a"
        while w.alive:  # noqa: ASYNC110 - the residency tells nobody
            await asyncio.sleep(0.01)
        await w.call("a")
        assert w.started == ["a", "a"]


async def test_a_resident_model_stays_when_no_idle_time_is_set() -> None:
    async with world() as w:
        await w.call("a")
        await asyncio.sleep(0.2)
        assert w.residency.model == "a"


async def test_closing_ends_waiting_calls_and_the_resident_model() -> None:
    async with world(start_s=5) as w:
        waiting = asyncio.create_task(w.call("a"))
        await asyncio.sleep(0.02)
        await w.residency.close()
        assert (await asyncio.gather(waiting, return_exceptions=True))[0].__class__ is asyncio.CancelledError
