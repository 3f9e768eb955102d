"""Tails and quantiles agree with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from services.results.statistics import distributions


def test_tails_and_quantiles_are_scipys() -> None:
    degrees = np.concatenate([np.arange(1, 320), [1.3, 7.7, 1e3, 1e5, np.inf]])
    for probability in (0.8, 0.975, 0.9995):
        found = distributions.student_quantile(probability, degrees)
        np.testing.assert_allclose(found, stats.t.ppf(probability, degrees), rtol=1e-9)
    t = np.linspace(-6, 9, len(degrees))
    np.testing.assert_allclose(distributions.student_tail(t, degrees), stats.t.sf(t, degrees), rtol=1e-9)
    trials = np.repeat([1, 5, 60, 3001, 40_000], 9)
    most = np.floor(trials * np.tile(np.linspace(0, 1, 9), 5)) - 1
    np.testing.assert_allclose(distributions.binomial_tail(most, trials), stats.binom.cdf(most, trials, 0.5), rtol=1e-8)
    for degree in (1, 2, 7, 30):
        for x in (0.0, 0.3, 8.0, 90.0):
            assert distributions.chi_square_tail(x, degree) == pytest.approx(stats.chi2.sf(x, degree), rel=1e-9)
