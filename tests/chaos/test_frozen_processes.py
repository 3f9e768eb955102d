"""A process that is stopped, not ended, is noticed and replaced, and its job goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.chaos.invariants import violations
from tests.chaos.launched import until
from tests.chaos.shooting import job_under_watch
from tests.chaos.world import MODELS, open_world

pytestmark = pytest.mark.chaos

FROZEN = ("nats", "scheduler", "results", "evaluator-1", "gateway")


async def test_every_frozen_process_is_replaced_and_the_job_goes_on(tmp_path: Path) -> None:
    async with open_world(tmp_path, TOUCHSTONE_SILENT_S="5") as world:
        launched = world.launched
        async with job_under_watch(world, 0, MODELS[0]) as run:
            for number, name in enumerate(FROZEN):
                await run.reaches(0.05 + 0.15 * number)
                await launched.until_ready()
                frozen = launched.pid(name)
                assert frozen is not None
                os.kill(frozen, signal.SIGSTOP)
                await launched.replaced(name, frozen)
                await launched.until_ready()
        # Calls of what was frozen are repeated, as after a kill, but no kill is on record here.
        assert [one for one in await violations(world, run) if "without a kill" not in one] == []
        said = launched.log("launcher")
        for name in FROZEN:
            assert f"{name} has not answered for" in said


async def test_processes_that_wait_for_a_frozen_nats_are_not_restarted(tmp_path: Path) -> None:
    async with open_world(tmp_path, TOUCHSTONE_SILENT_S="10") as world:
        launched = world.launched
        others = ("scheduler", "results", "evaluator-1", "evaluator-2", "gateway")
        before = {name: launched.pid(name) for name in others}
        frozen = launched.pid("nats")
        assert frozen is not None
        os.kill(frozen, signal.SIGSTOP)
        await launched.replaced("nats", frozen)
        await launched.until_ready()
        assert {name: launched.pid(name) for name in others} == before


async def test_children_go_on_under_a_frozen_launcher(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        launched = world.launched
        launcher = launched.pid("launcher")
        assert launcher is not None
        before = {name: launched.pid(name) for name in FROZEN}
        os.kill(launcher, signal.SIGSTOP)
        try:
            async with job_under_watch(world, 0, MODELS[0]) as run:
                await run.reaches(1)
        finally:
            os.kill(launcher, signal.SIGCONT)
        assert await violations(world, run) == []
        await until(lambda: launched.pid("nats"), 10, "nats is gone")
        assert {name: launched.pid(name) for name in FROZEN} == before
