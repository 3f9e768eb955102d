"""Thirty random kills over all processes, during jobs of 2,000 items."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services import bus
from tests.chaos.invariants import repeated, violations
from tests.chaos.shooting import plan, report, run_under_fire
from tests.chaos.world import MODELS, open_world

pytestmark = pytest.mark.chaos

JOBS = 5
KILLS_PER_JOB = 6
SEED = int(os.environ.get("CHAOS_SEED", "20261120"))


async def test_jobs_survive_thirty_kills_with_every_item_stored_once(tmp_path: Path) -> None:
    runs = []
    async with open_world(tmp_path) as world:
        try:
            for number, shots in enumerate(plan(SEED, JOBS, KILLS_PER_JOB)):
                run = await run_under_fire(world, number, MODELS[number], shots)
                runs.append(run)
                assert await violations(world, run) == [], f"seed {SEED}, job {number}"
            assert await world.messages(bus.WORK) == 0
            # Random kills must not condemn healthy units.
            assert await world.messages(bus.DLQ) == 0
        finally:
            print(report(SEED, runs))
            for run in runs:
                by_kill, _ = repeated(world, run)
                said = [f"{run.kills[i].shot.target} {calls}" for i, calls in sorted(by_kill.items())]
                print(f"  job {run.number} repeated model calls: {', '.join(said) or 'none'}")
    assert sum(len(run.kills) for run in runs) == JOBS * KILLS_PER_JOB
