"""Metrics that are the mean of a score: over items, over their answers' means, or over groups of items. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from services.results.statistics.intervals import clustered_interval, score_interval, t95
from services.results.statistics.metric_values import Cell, Estimate, Floats, Ints

UNIT_SPAN = (0.0, 1.0)
NO_SPREAD = 1e-9
"""Standard errors below this are rounding."""


def _no_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _no_floats() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of `n` units, added up. A unit is an item or a group of items.

    `low` and `high` are the totals had every unanswered item been wrong, or right. `variance` is the sample variance of
    the scores, 0 for fewer than two. `told` is the total of the `told_n` units with an answer. `clusters`, if they are
    distinguished, are the numbers of the clusters that units belong to, with the units (`sizes`), the total score
    (`sums`) of each, and its lowest and highest possible value (`lows`, `highs`).
    """

    n: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0
    least: float = 0.0
    most: float = 1.0
    variance: float = 0.0
    binary: bool = True
    told_n: int = 0
    told: float = 0.0
    clusters: Ints = field(default_factory=_no_ints)
    sizes: Floats = field(default_factory=_no_floats)
    sums: Floats = field(default_factory=_no_floats)
    lows: Floats = field(default_factory=_no_floats)
    highs: Floats = field(default_factory=_no_floats)

    @property
    def mean(self) -> float:
        return self.total / self.n

    @property
    def answered(self) -> float | None:
        """The mean over the units with an answer."""
        return self.told / self.told_n if self.told_n else None

    @property
    def span(self) -> tuple[float, float] | None:
        """The range in which the mean certainly lies; None when scores leave [0, 1]."""
        return UNIT_SPAN if self.least >= 0 and self.most <= 1 else None

    def influences(self) -> Floats:
        """How far each cluster moves the mean."""
        return (self.sums - self.sizes * self.mean) / self.n


@dataclass(frozen=True, slots=True)
class Lost:
    """Planned answers without a final outcome: whole units, and how far other lost answers could move the total."""

    units: int = 0
    moved: float = 0.0


def of_cells(cells: Sequence[Cell]) -> Scores:
    """Accuracy's scores."""
    n = round(sum(cell.count for cell in cells))
    correct = sum(cell.count for cell in cells if cell.correct)
    unanswered = sum(cell.count for cell in cells if cell.prediction is None)
    return Scores(n, correct, correct, correct + unanswered, told_n=n - round(unanswered), told=correct)


def estimate(scores: Scores, lost: Lost, *, clustered: bool) -> Estimate:
    """The mean of the scores. `clustered`: units of one cluster depend on each other, as do answers to one item.

    Else the interval is Wilson's for scores of 0 and 1, with √(p(1−p)/n), and Student's for others, with s/√n. So is
    the interval of scores of 0 and 1 if every unit has its own cluster.
    """
    if scores.n == 0:
        return Estimate(None, 0, undefined_reason="no items")
    return replace(_spread(scores, clustered=clustered), bounds=_bounds(scores, lost), answered=scores.answered)


def _spread(scores: Scores, *, clustered: bool) -> Estimate:
    n, mean = scores.n, scores.mean
    if clustered and not (scores.binary and len(scores.clusters) == n):
        stderr = clustered_stderr(scores.influences())
        return clustered_estimate(mean, n, stderr, len(scores.clusters), scores.span)
    if scores.binary:
        low, high = score_interval(mean, n)
        return Estimate(mean, n, math.sqrt(mean * (1 - mean) / n), low, high, "wilson")
    if n < 2:
        return Estimate(mean, n, method="t")
    stderr = math.sqrt(scores.variance / n)
    low, high = mean - t95(n - 1) * stderr, mean + t95(n - 1) * stderr
    if scores.span is not None:
        low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(mean, n, stderr, low, high, "t")


def clustered_stderr(influences: Floats) -> float:
    """√Σ_c ψ_c², where ψ_c is how far cluster c moves a value: for a mean √[Σ_c(Σ_{i∈c}(s_i−s̄))²]/n.

    Source: Liang and Zeger, Biometrika 73 (1986) 13.
    """
    return without_rounding(math.sqrt(float(influences @ influences)))


def without_rounding(stderr: float) -> float:
    """Shares such as thirds, and derivatives, leave rounding errors where there is no spread."""
    return 0.0 if stderr < NO_SPREAD else stderr


def clustered_estimate(
    value: float, n: int, stderr: float, clusters: int, span: tuple[float, float] | None
) -> Estimate:
    """A value with its clustered standard error; with fewer than two clusters its spread is unknown."""
    if clusters < 2:
        return Estimate(value, n, method="clustered")
    return Estimate(value, n, stderr, *clustered_interval(value, stderr, clusters, span), "clustered")


def pooled(parts: Sequence[tuple[Scores, Lost, bool]]) -> Estimate:
    """The mean over the units of several tasks together, given as for `estimate`. Tasks are independent.

    If units are dependent, or scores are not 0 and 1, its standard error combines those of the tasks. In `answered`,
    the unanswered units of each task count like its answered ones.
    """
    n = sum(found.n for found, _, _ in parts)
    lost = Lost(sum(gone.units for _, gone, _ in parts), sum(gone.moved for _, gone, _ in parts))
    told = [(found.n, found.answered) for found, _, _ in parts if found.n]
    known = [units * mean for units, mean in told if mean is not None]
    whole = Scores(
        n,
        total=sum(found.total for found, _, _ in parts),
        low=sum(found.low for found, _, _ in parts),
        high=sum(found.high for found, _, _ in parts),
        least=min((found.least for found, _, _ in parts), default=0.0),
        most=max((found.most for found, _, _ in parts), default=1.0),
        told_n=n if len(known) == len(told) else 0,
        told=sum(known),
    )
    if n == 0 or all(found.binary and not clustered for found, _, clustered in parts):
        return estimate(whole, lost, clustered=False)
    square, clusters = 0.0, 0
    for found, gone, clustered in parts:
        if found.n:
            square += (found.n / n * (estimate(found, gone, clustered=clustered).stderr or 0.0)) ** 2
            clusters += len(found.clusters) if clustered else found.n
    spread = clustered_estimate(whole.mean, n, math.sqrt(square), clusters, whole.span)
    return replace(spread, bounds=_bounds(whole, lost), answered=whole.answered)


def _bounds(scores: Scores, lost: Lost) -> tuple[float, float] | None:
    doubt = lost.units or lost.moved or scores.low != scores.high
    if doubt and scores.span is None:
        return None
    if not doubt:
        return scores.mean, scores.mean
    n = scores.n + lost.units
    return max(0.0, scores.low - lost.moved) / n, min(float(n), scores.high + lost.units + lost.moved) / n
