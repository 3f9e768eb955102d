"""Differences of shares agree with scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from services.results.paired import binary
from tests.unit.results.paired.drawn import difference
from tests.unit.results.paired_rows import counted

counts = st.integers(0, 300)


@given(counts, counts, counts, counts)
@settings(max_examples=60, deadline=None)
def test_mcnemars_p_is_that_of_scipy_and_statsmodels(both: int, only_a: int, only_b: int, neither: int) -> None:
    if both + only_a + only_b + neither == 0:
        return
    found = difference(counted(both, only_a, only_b, neither), "accuracy")
    expected = statsmodels_mcnemar([[both, only_a], [only_b, neither]], exact=True).pvalue
    assert found.p == pytest.approx(expected, rel=1e-9)
    if only_a + only_b:
        assert found.p == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue, rel=1e-9)
    assert (found.only_a, found.only_b, found.n) == (only_a, only_b, both + only_a + only_b + neither)
    items = np.repeat([0.0, 1.0, -1.0], [both + neither, only_a, only_b])
    assert found.value == pytest.approx(items.mean())
    assert found.stderr == pytest.approx(items.std() / np.sqrt(len(items)))


def test_the_score_statistic_takes_its_error_where_the_true_difference_holds() -> None:
    """Against the likelihood itself, maximised numerically under the difference (Tango 1998)."""
    for n, only_a, only_b, gap in ((48, 9, 3, 0.05), (100, 2, 11, 0.1), (250, 30, 22, -0.04), (60, 5, 0, 0.02)):

        def loss(share_b: float, n: int = n, a: int = only_a, b: int = only_b, gap: float = gap) -> float:
            rest = 1 - 2 * share_b - gap
            return float(-stats.multinomial.logpmf([a, b, n - a - b], n, [share_b + gap, share_b, rest]))

        low, high = max(0.0, -gap) + 1e-12, (1 - gap) / 2 - 1e-12
        share_b = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        expected = (only_a - only_b - n * gap) / np.sqrt(n * (2 * share_b + gap - gap**2))
        items, a, b = (np.array([float(v)]) for v in (n, only_a, only_b))
        found = binary.score_statistic(items, a, b, gap)
        assert found[0] == pytest.approx(expected, rel=1e-4)


def test_the_score_interval_ends_where_the_score_test_starts_to_reject() -> None:
    n, a, b = np.array([100.0, 871.0, 40.0]), np.array([9.0, 60.0, 0.0]), np.array([4.0, 80.0, 0.0])
    for end in binary.score_interval(n, a, b, 0.1):
        np.testing.assert_allclose(np.abs(binary.score_statistic(n, a, b, end)), stats.norm.ppf(0.95), rtol=1e-6)
