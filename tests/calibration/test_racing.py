"""What races between several models cost and save, and how often they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from services.results.sequential.race import BEST
from tests.calibration.deciding import ABSENT, FOLDER, TASKS, record
from tests.calibration.racing import best, chosen, run, tied, told_apart

pytestmark = [pytest.mark.calibration, pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)]

RACES = {3: 100, 5: 100, 10: 30, 20: 10}
EQUAL = {3: 2_500, 5: 1_200, 10: 300}
ITEMS = 500


@pytest.mark.parametrize("task", TASKS)
def test_a_race_takes_less_than_half_of_the_items_and_finds_what_all_would(task: str) -> None:
    rng, known = default_rng(31), record(task)
    for models, races in RACES.items():
        parts, agrees, alone = [], 0, 0
        for _ in range(races):
            right = chosen(rng, known, models)
            found = run(right)
            parts.append(found.part)
            agrees += found.standing.left == best(right)
            alone += found.standing.verdict == BEST
            # Nobody is out, of all items of the record, whose score is the highest.
            assert right.mean(axis=1).argmax() in found.standing.left
        print(
            f"\n{task}, {models} models: {np.mean(parts):.1%} of the items, one left in {alone / races:.0%}, the same "
            f"as by the tests of all items in {agrees / races:.0%}"
        )
        assert np.mean(parts) <= 0.5
        assert agrees >= 0.75 * races


@pytest.mark.parametrize("equal", ["all", "the best"])
def test_equal_models_are_told_apart_in_at_most_5_percent_of_races(equal: str) -> None:
    rng, records = default_rng(32), [record(task) for task in TASKS]
    wrong = total = 0
    for models, races in EQUAL.items():
        for number in range(races):
            right = chosen(rng, records[number % len(records)], models)[:, :ITEMS]
            dealt, top = tied(rng, right, models if equal == "all" else max(2, models // 2))
            wrong += told_apart(top, run(dealt).standing)
        total += races
    print(f"\n{equal} equal: told apart in {wrong / total:.2%} of {total:,} races")
    assert total >= 4_000
    assert wrong <= 0.05 * total
