"""All pairs of many systems on the same scenarios at once: differences, their tests, and the ranks that these allow.
Pure, for arrays.

The test is Student's paired t. If two systems are equal, a scenario's difference is equally likely to have the other
sign; then the t test rejects too often at most by little, and seldom in its tails (Efron, Journal of the American
Statistical Association 64 (1969) 1278). The exact test by signs cannot give less than 2 / 2ᵐ with m scenarios that
differ, so that no p is below that: without it, two scenarios with one and the same difference would be proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.results.paired.corrections import holm
from services.results.statistics.distributions import student_quantile, student_tail
from services.results.statistics.metric_values import Floats, Ints

ALPHA = 0.05
_DIGITS = 12
"""Decimals of scores: beyond them is rounding."""
_SAME = 10.0**-_DIGITS


@dataclass(frozen=True, slots=True)
class Differences:
    """Of pairs of systems, `a` minus `b` (pairs,), with p after Holm's correction for all pairs, NaN where a pair could
    not be tested."""

    a: Ints
    b: Ints
    values: Floats
    adjusted: Floats


@dataclass(frozen=True, slots=True)
class Intervals:
    """Of differences to one system: `values`, `low` and `high` (systems,), NaN where fewer than 2 scenarios are
    common; `n` counts them."""

    values: Floats
    low: Floats
    high: Floats
    n: Ints


def all_pairs(scores: Floats) -> Differences:
    """Of `scores` (systems, scenarios), NaN where a scenario has none: each pair on the scenarios that both have."""
    a, b = np.triu_indices(len(scores), 1)
    x, known = _read(scores)
    # Products of matrices take less work, but wait long for each other's threads on a busy machine.
    parts = [_minus(x[place], known[place], x[place + 1 :], known[place + 1 :]) for place in range(len(scores) - 1)]
    if not parts:
        return corrected(a, b, np.zeros(0), np.zeros(0))
    sums = _Sums(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return corrected(a, b, sums.values, _p(sums))


def corrected(a: Ints, b: Ints, values: Floats, p: Floats) -> Differences:
    """With Holm's correction of `p` (pairs,), NaN where there is none."""
    adjusted = np.full(len(p), np.nan)
    tested = ~np.isnan(p)
    adjusted[tested] = holm(p[tested])
    return Differences(a, b, values, adjusted)


def to_one(scores: Floats, one: int) -> Intervals:
    """Each system minus the system `one`, on the scenarios that both have; the 95 % interval is Student's.

    It assumes one more scenario that differs, as much as those that do; if all differ, nothing is added. Without any
    spread it is as wide as if one in n scenarios differed by 1 in each direction.
    """
    x, known_scores = _read(scores)
    found = _minus(x[one], known_scores[one], x, known_scores)
    counts = np.maximum(found.n, 1)
    spreads = found.variances > 0
    more = found.variances * (1 - found.differing / counts) / np.maximum(found.differing, 1)
    width = np.sqrt(np.where(spreads, found.variances + more, 4 / counts**2))
    half = student_quantile(1 - ALPHA / 2, np.maximum(found.n - 1, 1)) * width
    known = found.n >= 2
    values, low, high = (
        np.where(known, each, np.nan)
        for each in (-found.values, np.maximum(-found.values - half, -1.0), np.minimum(half - found.values, 1.0))
    )
    return Intervals(values, low, high, found.n)


def rank_ranges(systems: int, found: Differences) -> list[tuple[int, int]]:
    """The best and the worst rank of each system: after all that are shown to be better, and before all that are shown
    to be worse."""
    with np.errstate(invalid="ignore"):
        shown = (found.adjusted <= ALPHA) & (found.values != 0)
    ahead = np.where(found.values > 0, found.a, found.b)[shown]
    behind = np.where(found.values > 0, found.b, found.a)[shown]
    better = np.bincount(behind, minlength=systems)
    worse = np.bincount(ahead, minlength=systems)
    return [(1 + above, systems - below) for above, below in zip(better.tolist(), worse.tolist(), strict=True)]


class _Sums(NamedTuple):
    """Of differences (pairs,): their mean over the `n` common scenarios, the variance of the mean, and how many of the
    scenarios differ."""

    values: Floats
    variances: Floats
    n: Ints
    differing: Ints


def _read(scores: Floats) -> tuple[Floats, Floats]:
    """Scores without rounding errors, 0 where there are none, and 1 where there are (systems, scenarios)."""
    known = ~np.isnan(scores)
    return np.where(known, np.round(scores, _DIGITS), 0.0), known.astype(float)


def _minus(one: Floats, known: Floats, others: Floats, known_others: Floats) -> _Sums:
    """One system minus each of the others."""
    differences = one * known_others
    differences -= others * known
    n = np.einsum("ij,j->i", known_others, known)
    counts = np.maximum(n, 1)
    values = differences.sum(axis=1) / counts
    values[np.abs(values) <= _SAME] = 0.0
    squares = np.einsum("ij,ij->i", differences, differences) - n * values**2
    variances = squares / np.maximum(n - 1, 1) / counts
    # Equal differences leave rounding errors.
    variances[variances <= _SAME] = 0.0
    return _Sums(values, variances, n.astype(np.int64), np.count_nonzero(differences, axis=1))


def _p(found: _Sums) -> Floats:
    """Two-sided, NaN with fewer than 2 scenarios."""
    spreads = found.variances > 0
    t = np.where(spreads, np.abs(found.values) / np.sqrt(np.where(spreads, found.variances, 1.0)), np.inf)
    p = 2 * student_tail(np.where(found.values == 0, 0.0, t), np.maximum(found.n - 1, 1))
    least = 2.0 ** (1 - np.minimum(found.differing, 1000))
    return np.where(found.n >= 2, np.minimum(1.0, np.maximum(p, least)), np.nan)
