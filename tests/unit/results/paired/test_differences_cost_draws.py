"""Ratios of costs agree with numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.paired.pairs.rows import Cost
from tests.unit.results.paired.drawn import difference
from tests.unit.results.paired_rows import mixed_task


@pytest.mark.parametrize("statistic", ["mean", "p50", "p95"])
def test_ratios_of_costs_are_numpys(statistic: str) -> None:
    task = mixed_task(np.random.default_rng(3), "cost", models=2, n=70)
    cost = task.metrics[statistic]
    assert isinstance(cost, Cost)
    whole = cost.values.mean(axis=0) if statistic == "mean" else np.percentile(cost.values, int(statistic[1:]), axis=0)
    assert difference(task, statistic).value == pytest.approx(np.log(whole[0] / whole[1]))
