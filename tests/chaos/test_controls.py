"""The same test must be able to fail: services that acknowledge before the effect is stored lose items under it.

A kill while the one before is not yet got over finds nothing in hand and proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.invariants import violations
from tests.chaos.launched import EVALUATORS
from tests.chaos.shooting import plan, run_under_fire
from tests.chaos.world import MODELS, open_world

pytestmark = pytest.mark.chaos

SEED = 7
KILLS = 4


async def _found(folder: Path, patch: str, targets: Sequence[str]) -> list[str]:
    async with open_world(folder, patch) as world:
        run = await run_under_fire(world, 0, MODELS[0], plan(SEED, 1, KILLS, targets)[0], at_work=True)
        return await violations(world, run)


async def test_an_evaluator_that_acknowledges_first_is_found_to_lose_items(tmp_path: Path) -> None:
    found = await _found(tmp_path, "evaluator_acknowledges_first", EVALUATORS)
    print(found)
    assert any("items are missing" in sentence for sentence in found)


async def test_a_results_service_that_acknowledges_first_is_found_to_lose_items(tmp_path: Path) -> None:
    found = await _found(tmp_path, "results_acknowledges_first", ("results",))
    print(found)
    assert any("items are missing" in sentence for sentence in found)


@pytest.mark.parametrize("targets", [EVALUATORS, ("results",)], ids=["evaluators", "results"])
async def test_the_real_ones_lose_nothing_under_the_same_kills(tmp_path: Path, targets: Sequence[str]) -> None:
    assert await _found(tmp_path, "", targets) == []
