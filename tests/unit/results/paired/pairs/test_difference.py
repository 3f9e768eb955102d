"""Differences of paired scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from services.results.paired.pairs.difference import Terms
from tests.unit.results.paired.drawn import difference
from tests.unit.results.paired_rows import scored


def test_differences_of_scores_have_the_error_interval_and_equivalence_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((60, 2)) * [0.9, 1.0]
    found = difference(scored(values), "score", Terms(margin=0.2))
    expected = stats.ttest_rel(values[:, 0], values[:, 1])
    interval = expected.confidence_interval(0.95)
    assert found.stderr == pytest.approx((values[:, 0] - values[:, 1]).std(ddof=1) / np.sqrt(60))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=0.05)
    assert found.equivalence_p == pytest.approx(ttost_paired(values[:, 0], values[:, 1], -0.2, 0.2)[0], rel=1e-6)
