"""Intervals of shares and means agree with scipy and stay in range."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from services.results.statistics.intervals import clustered_interval, score_interval, t95


def test_students_quantile_equals_scipys_for_every_number_of_degrees() -> None:
    degrees = [*range(1, 330), 1000, 100_000]
    expected = [float(stats.t.ppf(0.975, d)) for d in degrees]
    assert [t95(d) for d in degrees] == pytest.approx(expected, abs=1e-9)


def test_the_score_interval_is_wilsons() -> None:
    for right, n in ((0, 7), (3, 30), (29, 30), (30, 30), (812, 1000)):
        interval = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
        assert score_interval(right / n, n) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_a_clustered_interval_stays_within_the_metrics_range_and_is_symmetric_where_there_is_none() -> None:
    low, high = clustered_interval(0.97, 0.03, 15, (-1.0, 1.0))
    assert -1 < low < 0.97 < high < 1
    assert clustered_interval(5.0, 1.0, 16, None) == pytest.approx((5 - t95(15), 5 + t95(15)))


def test_wilsons_interval_is_statsmodels() -> None:
    for right, n in ((0, 7), (29, 30), (812, 1000)):
        expected = proportion_confint(right, n, method="wilson")
        assert score_interval(right / n, n) == pytest.approx(expected, abs=1e-12)


def test_wilson_intervals_cover_close_to_95_percent_on_average_over_p() -> None:
    coverage = []
    for n in (30, 71, 277):
        for p in np.linspace(0.05, 0.95, 19):
            counts = np.arange(n + 1)
            inside = np.array([low <= p <= high for low, high in (score_interval(k / n, n) for k in counts)])
            coverage.append(float(stats.binom.pmf(counts, n, p)[inside].sum()))
    assert 0.94 <= np.mean(coverage) <= 0.96
    assert min(coverage) > 0.90
