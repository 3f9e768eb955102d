"""The sign-flip test agrees with scipy's, whichever way it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from services.results.paired.sign_flip import sign_flip_p
from tests.parts import NIGHTLY


@pytest.mark.parametrize("n", [3, 8, 13])
def test_the_sign_flip_test_is_scipys_exact_permutation_test(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.normal(0.4, 1, n), rng.integers(-2, 4, n).astype(float), np.round(rng.normal(0.3, 1, n), 1)):
        expected = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=2**n + 1).pvalue
        assert sign_flip_p(values, np.ones(n)) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.sampled_from([-3, -2, -1, -0.5, 0, 0.25, 1, 2]), min_size=1, max_size=60))
@settings(max_examples=100 if NIGHTLY else 40, deadline=None)
def test_every_way_to_the_sign_flip_test_gives_the_same_p(values: list[float]) -> None:
    """Few sums are enumerated, those on a lattice transformed: a tenth of a percent tells ties apart."""
    differences = np.array(values)
    whole = sign_flip_p(differences, np.ones(len(values)))
    assert 0 < whole <= 1
    distinct, times = np.unique(differences, return_counts=True)
    assert sign_flip_p(distinct, times.astype(float)) == pytest.approx(whole, rel=1e-9)
    shares = 1.0
    outcomes = np.zeros(1)
    for value in np.abs(differences[:14]):
        outcomes = np.concatenate([outcomes + value, outcomes - value])
    if len(differences) <= 14:
        shares = float(np.mean(np.abs(outcomes) >= abs(differences.sum()) - 1e-9))
        assert whole == pytest.approx(shares, rel=1e-9)


def test_many_differences_of_many_sizes_are_tested_as_by_a_million_draws() -> None:
    rng = np.random.default_rng(6)
    values = rng.gamma(0.7, 1, 80) * rng.choice([-1, 1], 80, p=[0.36, 0.64])
    sums = (2.0 * rng.integers(0, 2, (400_000, 80), dtype=np.int8) - 1) @ np.abs(values)
    expected = np.mean(np.abs(sums) >= abs(values.sum()))
    assert sign_flip_p(values, np.ones(80)) == pytest.approx(expected, rel=0.03)
