"""How far judges, people among them, agree. Pure.

Scores are arrays over items, NaN where there is none; an item counts where all that are compared have one. Intervals
are of 95 % and treat the items as independent draws, of all that could be asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from services.results.statistics.bounded_means import spread
from services.results.statistics.distributions import normal_tail
from services.results.statistics.intervals import Z95, clustered_interval, largest, score_interval, smallest, t95
from services.results.statistics.metric_values import Floats

Level = Literal["nominal", "ordinal", "interval"]
RESAMPLES = 2_000
_CHUNK = 2_000_000
"""Numbers in memory at a time."""
_ALL_PAIRS = 16
"""Up to this number of scores, each could meet each other one. Beyond it, only pairs that occur are counted."""
_TINY = 1e-12
_ASSUMED = 5.0
"""As in `prediction_powered`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, of n items (or pairs)."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Positions:
    """Of pairs of answers judged in both orders: the share on which both orders prefer the same answer, or neither,
    and the share of preferences for the answer shown first, .5 without a bias. None where there are none."""

    agreement: Estimate | None
    first: Estimate | None


def share(hits: int, n: int) -> Estimate | None:
    """Of `hits` among n, with Wilson's interval. None if n is 0."""
    return Estimate(hits / n, *score_interval(hits / n, n), n) if n else None


def accuracy(judge: Floats, people: Floats) -> Estimate | None:
    """The share of items (items,) with equal scores. None without an item that has both."""
    judge, people = _both(judge, people)
    return share(int((np.abs(judge - people) < _TINY).sum()), len(judge))


def failures(judge: Floats) -> Estimate | None:
    """The share of judgements (items,) that failed: NaN. None without any judgement."""
    return share(int(np.isnan(judge).sum()), len(judge))


def bias(judge: Floats, people: Floats) -> Estimate | None:
    """The mean of judge's minus people's scores (items,), within [0, 1]. None with fewer than 2 items that have both.

    The interval is `bounded_means`'s, so that it has a width although the judge made no mistake so far.
    """
    judge, people = _both(judge, people)
    n = len(judge)
    if n < 2:
        return None
    mean = float(people.mean())
    far = max(mean, 1 - mean)
    down, up = spread(judge - people, people, _ASSUMED, (-far, far)).ends(n, math.inf)
    value = float((judge - people).mean())
    return Estimate(value, max(-1.0, value + down), min(1.0, value + up), n)


def kappa(first: Floats, second: Floats, *, quadratic: bool = False) -> Estimate | None:
    """Cohen's kappa of two judges' scores (items,): agreement beyond chance, 1 at most.

    `quadratic` weighs a disagreement by the square of the scores' distance, else all weigh the same. The interval
    reaches from the smallest to the largest kappa of any table of shares that a chi-square test does not reject, as
    those of other metrics of a table do (`intervals`): a standard error has no width when all agree.
    None without an item that has both, or where both gave one and the same score to all.

    Sources: Cohen, Educational and Psychological Measurement 20 (1960) 37; Psychological Bulletin 70 (1968) 213.
    """
    first, second = _both(first, second)
    scores, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    count, n = len(scores), len(first)
    if count < 2:
        return None
    rows, columns = places[:n], places[n:]
    table = np.bincount(rows * count + columns, minlength=count * count).astype(float)
    counted = np.arange(count * count) if count <= _ALL_PAIRS else np.flatnonzero(table)
    of_first, of_second = counted // count, counted % count
    differences = scores[:, None] - scores
    weights = differences**2 if quadratic else (differences != 0).astype(float)
    seen_weights = weights[of_first, of_second]

    def metric(shares: Floats) -> tuple[float, Floats]:
        by_first = np.bincount(of_first, shares, count)
        by_second = np.bincount(of_second, shares, count)
        expected = max(_TINY, float(by_first @ weights @ by_second))
        observed = float(shares @ seen_weights)
        moved = (weights @ by_second)[of_first] + (weights @ by_first)[of_second]
        slopes = (observed / expected * moved - seen_weights) / expected
        return 1 - observed / expected, slopes - shares @ slopes

    counts = table[counted]
    value, _ = metric(counts / n)
    return Estimate(value, min(value, smallest(counts, metric)), max(value, largest(counts, metric)), n)


def positions(one_way: Floats, other_way: Floats) -> Positions:
    """Of the preferences (pairs,) of a judge that saw each pair of answers in one order and in the other: 1 for the
    answer shown first, 0 for the one shown second, .5 for neither, NaN if it failed."""
    one_way, other_way = _both(one_way, other_way)
    n = len(one_way)
    same = np.abs(one_way + other_way - 1) < _TINY
    verdicts = np.stack([one_way, other_way])
    preferring = verdicts != 0.5
    preferences = int(preferring.sum())
    first = None
    if preferences:
        value = float(verdicts[preferring].mean())
        # The two verdicts on a pair depend on each other.
        off = ((verdicts - value) * preferring).sum(axis=0)
        pairs = int(preferring.any(axis=0).sum())
        stderr = math.sqrt(float((off**2).sum())) / preferences
        interval = clustered_interval(value, stderr, pairs, (0.0, 1.0)) if pairs > 1 else (0.0, 1.0)
        first = Estimate(value, *interval, pairs)
    return Positions(share(int(same.sum()), n), first)


def krippendorff(
    ratings: Floats, level: Level, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Estimate | None:
    """Krippendorff's alpha of `ratings` (raters, items), NaN where a rater gave none: 1 if all agree, 0 if they agree
    as by chance. n are the items with two ratings or more; the others do not count.

    The interval is from resamples of the items. Its percentiles are further out than 2.5 and 97.5, as Student's t is
    than the normal distribution (Hesterberg, The American Statistician 69 (2015) 371). Where all agree, it is the one
    of no disagreement in n items, one of which would be as large as by chance.
    None with fewer than 2 such items, or if all their ratings are the same.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    present = ~np.isnan(ratings)
    paired = present.sum(axis=0) >= 2
    ratings, present = ratings[:, paired], present[:, paired]
    n = int(paired.sum())
    if n < 2:
        return None
    scores = np.unique(ratings[present])
    if len(scores) < 2:
        return None
    counts = np.stack([((ratings == one) & present).sum(axis=0) for one in scores], axis=1).astype(float)
    value = float(_alphas(np.ones((1, n)), counts, scores, level)[0])
    draws = []
    size = max(1, _CHUNK // max(counts.shape))
    for start in range(0, resamples, size):
        picked = rng.multinomial(n, np.full(n, 1 / n), min(size, resamples - start)).astype(float)
        draws.append(_alphas(picked, counts, scores, level))
    outer = float(normal_tail(t95(n - 1) * math.sqrt(n / (n - 1))))
    low, high = np.nanquantile(np.concatenate(draws), [outer, 1 - outer])
    if value >= 1:
        low = 1 - Z95**2 / (n + Z95**2)
    return Estimate(value, min(value, float(low)), max(value, float(high)), n)


def _alphas(picked: Floats, counts: Floats, scores: Floats, level: Level) -> Floats:
    """Alpha of items that occur `picked` (resamples, items) times each; `counts` (items, scores) are of ratings. NaN
    where all ratings are the same.

    Ordinal distances are those of the scores' middle ranks among all ratings, so that only these need another sum.
    """
    ratings = counts.sum(axis=1)
    pairs = 1 / (ratings - 1)
    totals = picked @ counts
    count = totals.sum(axis=1)
    if level == "nominal":
        within = picked @ ((ratings**2 - (counts**2).sum(axis=1)) * pairs)
        between = count**2 - (totals**2).sum(axis=1)
    else:
        # Moving all values by one number changes no distance, and keeps the squares small.
        if level == "interval":
            values = np.broadcast_to(scores - scores.mean(), totals.shape)
        else:
            values = np.cumsum(totals, axis=1) - totals / 2 - count[:, None] / 2
        squares, sums = (values**2) @ counts.T, values @ counts.T
        within = 2 * (picked * (ratings * squares - sums**2) * pairs).sum(axis=1)
        between = 2 * (count * (totals * values**2).sum(axis=1) - (totals * values).sum(axis=1) ** 2)
    return np.where(between > _TINY, 1 - (count - 1) * within / np.where(between > _TINY, between, 1), np.nan)


def _both(*columns: Floats) -> Sequence[Floats]:
    """Only the items for which each of the columns has a score. Raises ValueError for columns of other lengths."""
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise ValueError(f"scores have shapes {', '.join(str(column.shape) for column in columns)}")
    present = np.flatnonzero(~np.isnan(np.stack(columns)).any(axis=0))
    return [column[present] for column in columns]
