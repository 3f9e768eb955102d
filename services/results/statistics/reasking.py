"""How much scores change when the same items are asked again, by the same serving or another one. Pure.

A serving is a list of runs of one model, each an array (repeats, items) of scores within [0, 1], all with as many
repeats. Items have weights (items,) that add up to 1: the score of a run is their weighted mean. Items with one number
in `clusters` (items,) share something, such as a passage, and intervals over items count them as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from services.results.statistics.bounded_means import spread
from services.results.statistics.distributions import normal_quantile, student_quantile
from services.results.statistics.intervals import clustered_interval, t95
from services.results.statistics.metric_values import Floats, Ints

Serving = Sequence[Floats]

_ALMOST_NORMAL = 1e4
"""Degrees of freedom."""
_FEW = 30
"""Items. From here on both intervals of flips are about the same."""


@dataclass(frozen=True, slots=True)
class Flips:
    """The mean difference of an item's scores in two askings, without its sign: for right and wrong the share of the
    items that flip. `low` and `high` are its 95 % interval, over items like these."""

    share: float
    low: float
    high: float


def flips_of_reasking(servings: Sequence[Serving], clusters: Ints) -> Flips | None:
    """Between two askings of one serving; None without."""
    found = [_own(np.concatenate(runs)) for runs in servings if askings(runs) > 1]
    return flips(np.mean(found, axis=0), clusters) if found else None


def flips_of_servings(servings: Sequence[Serving], clusters: Ints) -> Flips | None:
    """Between askings of two servings; None with one serving."""
    found = [_between(np.concatenate(a), np.concatenate(b)) for a, b in combinations(servings, 2)]
    return flips(np.mean(found, axis=0), clusters) if found else None


def askings(runs: Serving) -> int:
    """How often each item was asked."""
    return sum(len(run) for run in runs)


def flips(shares: Floats, clusters: Ints) -> Flips:
    """Of the mean differences of items (items,), within [0, 1]."""
    return Flips(float(shares.mean()), *_mean_interval(shares, clusters))


def _mean_interval(values: Floats, clusters: Ints) -> tuple[float, float]:
    """The 95 % interval of the mean of values of items (items,), within [0, 1], over items or clusters like these."""
    mean, (_, places) = float(values.mean()), np.unique(clusters, return_inverse=True)
    moved = np.bincount(places, values - mean) / len(values)
    if len(moved) < 2:
        return 0.0, 1.0
    if len(moved) < len(values):
        return clustered_interval(mean, math.sqrt(float(moved @ moved)), len(moved), (0.0, 1.0))
    down, up = spread(values, values, 0.0).ends(len(values), np.inf)
    low, high = max(0.0, mean + down), min(1.0, mean + up)
    if len(values) < _FEW:
        # A few values may be close together by chance, which says little of how others are.
        error = math.sqrt(float(moved @ moved) * len(values) / (len(values) - 1))
        least, most = clustered_interval(mean, error, len(values), (0.0, 1.0))
        return min(low, least), max(high, most)
    return low, high


def differences(one: Serving, other: Serving) -> Floats:
    """Of each item (items,), the mean difference between an asking of each, without its sign."""
    return _between(np.concatenate(one), np.concatenate(other))


def excess(shares: Floats, servings: Sequence[Serving], clusters: Ints) -> tuple[float, float, float] | None:
    """The mean of these differences of items minus those between two askings of one serving, with its 95 % interval.
    None where none asked twice, and for fewer than two items.

    Where nearly no item changes, the few that do say little of the other direction. So the interval is as if one more
    item, or cluster, had changed in each direction, by the most that one has.
    """
    found = [_own(np.concatenate(runs)) for runs in servings if askings(runs) > 1]
    if not found or len(shares) < 2:
        return None
    beyond: Floats = shares - np.mean(found, axis=0)
    mean, (_, places) = float(beyond.mean()), np.unique(clusters, return_inverse=True)
    moved, whole = (np.bincount(places, values) / len(beyond) for values in (beyond - mean, beyond))
    count = len(moved)
    if count < 2:
        return mean, -1.0, 1.0
    largest = float(np.abs(whole).max()) or 1 / count
    half = t95(count - 1) * math.sqrt(float(moved @ moved) * count / (count - 1) + 2 * largest**2)
    return mean, max(-1.0, mean - half), min(1.0, mean + half)


@dataclass(frozen=True, slots=True)
class Shift:
    """What moves all items of a run together: `variance` of the score of a run beyond what single items explain, which
    is the `chance` part. `degrees` of freedom belong to it."""

    variance: float
    chance: float
    degrees: int

    @property
    def of_run(self) -> float:
        """Variance of the score of one run, if the same items are asked again."""
        return self.variance + self.chance


def shift(runs: Serving, weights: Floats) -> Shift | None:
    """Of one serving's runs; None for fewer than two.

    The scores of the runs vary by both; the variance of single items says how much of that they explain.
    """
    if len(runs) < 2:
        return None
    means = np.stack([run.mean(axis=0) for run in runs])
    squares = float(weights @ weights)
    chance = float(weights**2 @ means.var(axis=0, ddof=1))
    of_scores = float((means @ weights).var(ddof=1))
    beyond = (of_scores - chance) / (1 - squares) if squares < 1 else 0.0
    return Shift(max(0.0, beyond), chance, len(runs) - 1)


def pooled(shifts: Sequence[Shift]) -> Shift | None:
    """Of several servings, as if they had the same; None without any."""
    degrees = sum(one.degrees for one in shifts)
    if not degrees:
        return None
    variance, chance = (
        sum(getattr(one, name) * one.degrees for one in shifts) / degrees for name in ("variance", "chance")
    )
    return Shift(variance, chance, degrees)


def widened(distance: float, shifts: Sequence[Shift], variance: float, items: int, alpha: float) -> float:
    """How far an interval at 1 − alpha reaches with the shifts of the runs that it compares.

    `distance` is how far it reaches without, and `variance` that of the difference over `items`. Student's t has
    the degrees of freedom by which the sum is known (Satterthwaite, Biometrics Bulletin 2 (1946) 110).
    """
    further = sum(one.variance for one in shifts)
    if not further:
        return distance
    unsure = variance**2 / max(items - 1, 1) + sum(one.variance**2 / one.degrees for one in shifts)
    degrees = max(1.0, min((variance + further) ** 2 / unsure, _ALMOST_NORMAL))
    normal = normal_quantile(1 - alpha / 2)
    return float(student_quantile(1 - alpha / 2, degrees)) / normal * math.hypot(distance, normal * math.sqrt(further))


def floor(servings: Sequence[Serving], weights: Floats) -> float | None:
    """If one serving answers the items in two runs, their scores differ by at most this with a chance of 95 %. None
    where none asked twice.

    From repeats of single runs alone, nothing that moves a whole run is known, and it counts as nothing. Few items may
    not have flipped that will: one more is added to what was seen.
    """
    known = pooled([found for runs in servings if (found := shift(runs, weights)) is not None])
    if known is not None:
        repeated = [runs for runs in servings if len(runs) > 1]
        spreads = [np.stack([run.mean(axis=0) for run in runs]).var(axis=0, ddof=1) for runs in repeated]
        times = known.degrees
    else:
        repeated = [runs for runs in servings if len(runs[0]) > 1]
        spreads = [_within(runs) / len(runs[0]) for runs in repeated]
        times = sum(len(runs[0]) - 1 for runs in repeated)
        if not repeated:
            return None
        known = Shift(0.0, fmean(float(weights**2 @ one) for one in spreads), len(weights))
    most = max(float(one.max()) for one in spreads) or 0.5 / len(repeated[0][0])
    chance = known.chance + most * float((weights**2).max()) / times
    # What moves runs is what their scores vary beyond chance, so it is known no better than that.
    reach = float(student_quantile(0.975, known.degrees)) if known.variance else normal_quantile(0.975)
    return reach * math.sqrt(2 * (known.variance + chance))


@dataclass(frozen=True, slots=True)
class Parts:
    """Variance of the score of one answer, by its source: `items`, `reasking`, `runs` and `servings`, which move all
    items together, and `interaction` of servings with single items. At least 0; None where a source was not varied,
    whose variance is then a part of others."""

    items: float
    reasking: float | None = None
    runs: float | None = None
    servings: float | None = None
    interaction: float | None = None


def variance_parts(servings: Sequence[Serving], weights: Floats) -> Parts | None:
    """By mean squares that have these parts as their expectations; None for fewer than two items.

    Source: Searle, Casella and McCulloch, Variance Components (1992), chapter 5.
    """
    squares = float(weights @ weights)
    if len(weights) < 2:
        return None
    of_runs = pooled([found for runs in servings if (found := shift(runs, weights)) is not None])
    runs = None if of_runs is None else of_runs.variance
    asked_twice = [place for place, one in enumerate(servings) if askings(one) > 1]
    reasking = None
    if asked_twice:
        # Between the runs of a serving the shifts count, too; between the repeats of one they do not.
        within = [float(weights @ _within(servings[place])) for place in asked_twice]
        shifted = 0.0 if len(servings[asked_twice[0]][0]) > 1 else runs or 0.0
        reasking = max(0.0, fmean(within) - shifted)
    left = [
        float(weights @ (asking - weights @ asking) ** 2) / (1 - squares)
        for one in servings
        for run in one
        for asking in run
    ]
    if len(servings) < 2:
        return Parts(max(0.0, fmean(left) - (reasking or 0.0)), reasking, runs)
    means = np.stack([np.mean([run.mean(axis=0) for run in one], axis=0) for one in servings])
    of_items = means.var(axis=0, ddof=1)
    moved = (float((means @ weights).var(ddof=1)) - float(weights**2 @ of_items)) / (1 - squares)
    own_runs = (runs or 0.0) * fmean(1 / len(one) for one in servings)
    own_chance = (reasking or 0.0) * fmean(1 / askings(one) for one in servings)
    interaction = max(0.0, float(weights @ of_items) - max(0.0, moved) - own_chance)
    items = max(0.0, fmean(left) - interaction - (reasking or 0.0))
    return Parts(items, reasking, runs, max(0.0, moved - own_runs), interaction)


def _within(runs: Serving) -> Floats:
    """Of each item the variance between askings: the repeats of a run, else between runs."""
    if len(runs[0]) > 1:
        found: Floats = np.mean([run.var(axis=0, ddof=1) for run in runs], axis=0)
        return found
    one: Floats = np.concatenate(runs).var(axis=0, ddof=1)
    return one


def _own(scores: Floats) -> Floats:
    """Of each item of (askings, items), the mean over two different askings."""
    askings = len(scores)
    # Sorted, each score is the larger one of as many pairs as there are smaller ones.
    order = 2.0 * np.arange(askings) - (askings - 1)
    found: Floats = 2 * (order @ np.sort(scores, axis=0)) / (askings * (askings - 1))
    return np.clip(found, 0.0, 1.0)


def _between(one: Floats, other: Floats) -> Floats:
    """Of each item, the mean over an asking of each."""
    found: Floats = np.mean([np.abs(other - asking).mean(axis=0) for asking in one], axis=0)
    return found
