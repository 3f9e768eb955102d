"""Adjusted p-values agree with statsmodels and keep their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from services.results.paired.corrections import (
    Correction,
    adjust,
    adjust_pairs,
    benjamini_hochberg,
    holm,
    task_family,
    within,
)
from services.results.paired.differences import task_differences
from services.results.paired.pairs.difference import Difference, Reach, Terms
from tests.parts import NIGHTLY
from tests.unit.results.paired_rows import counted

TERMS = Terms()


@pytest.mark.parametrize("count", [1, 2, 14, 57])
def test_adjusted_p_are_those_of_statsmodels(count: int) -> None:
    p = np.round(np.random.default_rng(count).random(count) ** 3, 2).tolist()
    for function, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        assert function(p) == pytest.approx(multipletests(p, method=method)[1].tolist(), abs=1e-12)


chances = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(chances)
@settings(max_examples=100 if NIGHTLY else 40, deadline=None)
def test_adjusted_p_keep_their_order_and_only_grow(p: list[float]) -> None:
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert all(a >= b for a, b in zip(adjusted, p, strict=True))
        assert np.all(np.diff(np.array(adjusted)[np.argsort(p, kind="stable")]) >= 0)
    assert all(a >= b - 1e-12 for a, b in zip(holm(p), benjamini_hochberg(p), strict=True))


def test_what_has_no_p_stays_outside_of_its_family() -> None:
    assert adjust([0.01, None, 0.04], Correction.HOLM) == [0.02, None, 0.04]
    assert adjust([0.01, None, 0.04], Correction.NONE) == [0.01, None, 0.04]
    assert adjust_pairs([0.001, None, 0.04], 0.03) == [0.03, None, 0.04]
    assert adjust_pairs([0.04], None) == [0.04]


def test_more_than_20_tasks_are_explored() -> None:
    assert [task_family(n)[1].value for n in (1, 20, 21, 57)] == ["", "holm", *["benjamini-hochberg"] * 2]
    assert [task_family(n)[0].value for n in (20, 21)] == ["tasks", "exploratory"]


@pytest.mark.parametrize("n", [872, 14_042])
def test_the_smallest_difference_shrinks_with_the_root_of_the_items(n: int) -> None:
    one, four = (
        task_differences([counted(6 * k, k, k, 2 * k)], [(0, 1)], TERMS)[0]["accuracy"][0].smallest or 0
        for k in (n // 10, 4 * (n // 10))
    )
    assert one / four == pytest.approx(2, rel=0.05)


def test_one_of_several_comparisons_has_to_be_larger_to_be_shown() -> None:
    by_counts = task_differences([counted(500, 60, 50, 262)], [(0, 1)], TERMS)[0]["accuracy"][0]
    by_reach = Difference(0.01, 872, smallest=0.02, reach=Reach(0.0071, 400.0, 1.0))
    unknown = Difference(0.01, 1)
    alone = within([by_counts], TERMS.alpha)[0]
    assert alone.smallest == pytest.approx(by_counts.smallest)
    family = within([by_counts, by_reach, unknown, *[by_counts] * 24], TERMS.alpha)
    # (z(1 - .05/54) + z(.8)) / (z(.975) + z(.8)), and t with 400 degrees.
    assert (family[0].smallest or 0) / (alone.smallest or 1) == pytest.approx(1.413, rel=0.02)
    assert family[1].smallest == pytest.approx(0.0071 * (3.137 + 0.843), rel=0.002)
    assert family[2].smallest is None
