"""Errors of differences of correlations agree with a bootstrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from services.results.paired.pairs.rows import Correlation
from tests.unit.results.paired.drawn import difference
from tests.unit.results.paired_rows import mixed_task


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_errors_of_differences_of_correlations_are_those_of_a_paired_bootstrap(metric: str) -> None:
    rng = np.random.default_rng(2)
    task = mixed_task(rng, "correlation", models=2, n=300)
    correlation = task.metrics[metric]
    assert isinstance(correlation, Correlation)
    function: Any = stats.pearsonr if metric == "pearson" else stats.spearmanr
    drawn = []
    for _ in range(400):
        picks = rng.integers(0, 300, 300)
        a, b = (function(c.values[picks], c.targets[picks]).statistic for c in correlation.columns)
        drawn.append(a - b)
    assert difference(task, metric).stderr == pytest.approx(np.std(drawn), rel=0.1)
