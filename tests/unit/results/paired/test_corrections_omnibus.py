"""Cochran's Q agrees with statsmodels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import cochrans_q

from services.results.paired.corrections import task_omnibus
from tests.unit.results.paired_rows import scored


@given(st.integers(3, 6), st.integers(5, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_cochrans_q_is_that_of_statsmodels(models: int, items: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2, (items, models)).astype(float)
    found = task_omnibus(scored(values), "score", range(models))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cochrans_q(values, return_object=True)
    if not np.isfinite(expected.statistic):
        assert found is None
        return
    assert found is not None
    assert (found.test, found.degrees_of_freedom, found.n) == ("Cochran's Q", models - 1, items)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
