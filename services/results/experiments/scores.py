"""The scores of each model with each prompt, which is a row: from a judge, from people, or from both. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from services.results.experiments.answers import Asked, Said
from services.results.paired import scenario_differences
from services.results.paired.scenario_differences import Differences, Intervals
from services.results.statistics import prediction_powered, scenario_means
from services.results.statistics.distributions import student_quantile, student_tail
from services.results.statistics.intervals import Z95
from services.results.statistics.metric_values import Floats, Ints
from services.results.statistics.scenario_means import Mean

MOST_TESTED = 300
"""Rows that are tested against each other."""
LEAST_RATED = 20
"""Scenarios that people rate before an estimate from both is shown. From 10, without a judge, only 89 % of the
intervals hold, and two equal models differ at 5 % in 10 % of the draws."""
Shape = tuple[int, int, int]
"""Prompts, scenarios and repeats."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Of rows, which are ordered by job, then by prompt. `means` are by metric and row, `of_models` by job, over all
    prompts. `ranked` are the rows with a composite, the best first. `differences` and `to_first` are of the first
    `MOST_TESTED` of these, as their places among them."""

    means: Sequence[Sequence[Mean | None]]
    of_models: Sequence[Mean | None]
    ranked: Ints
    differences: Differences
    to_first: Intervals

    @property
    def tested(self) -> int:
        return len(self.to_first.values)


def by_row(values: Floats, shape: Shape) -> Floats:
    """Of answers (…, jobs, rows of the dataset): means over repeats (…, rows, scenarios), NaN where there are none."""
    prompts, scenarios, repeats = shape
    split = values.reshape(*values.shape[:-2], values.shape[-2] * prompts, scenarios, repeats)
    if repeats == 1:
        return split[..., 0]
    known = ~np.isnan(split)
    n = known.sum(axis=-1)
    found: Floats = np.where(n > 0, np.where(known, split, 0.0).sum(axis=-1) / np.maximum(n, 1), np.nan)
    return found


def of_one(said: Said, shape: Shape) -> Scores:
    """From a judge's or from people's scores alone. A scenario counts in a row if one of its answers has a score."""
    scores = by_row(said.shares, shape)
    means = [scenario_means.means(metric) for metric in scores]
    ranked = _ranked(means[0])
    of_models = [
        scenario_means.mean_of_means(scores[0, start : start + shape[0]])
        for start in range(0, scores.shape[1], shape[0])
    ]
    composites = scores[0, ranked[:MOST_TESTED]]
    if not len(ranked):
        return _nothing(means, of_models)
    return Scores(
        means,
        of_models,
        ranked,
        scenario_differences.all_pairs(composites),
        scenario_differences.to_one(composites, 0),
    )


def of_both(people: Said, judge: Said, asked: Asked, order: Ints, shape: Shape) -> Scores:
    """People's means from their ratings and all of a judge's scores, where `LEAST_RATED` scenarios are rated. `order`
    (jobs, rows of the dataset) is each answer's place in the order in which people rate.

    Of each row, only the ratings before the first unrated answer are a random draw. A scenario counts as rated once all
    its answers are. The draws of two rows are independent, so that the interval of a difference follows from those of
    the rows (Zou and Donner, Statistics in Medicine 27 (2008) 1693).
    """
    labels = _drawn(people, asked, order, shape)
    judged = by_row(judge.shares, shape)
    answered = by_row(np.where(asked.answered, 1.0, np.nan), shape) == 1
    means: list[list[Mean | None]] = []
    for metric, said in zip(labels, judged, strict=True):
        means.append([_combined(metric[row][there], said[row][there]) for row, there in enumerate(answered)])
    ranked = _ranked(means[0])
    of_models = [_over_prompts(means[0][start : start + shape[0]]) for start in range(0, len(means[0]), shape[0])]
    if not len(ranked):
        return _nothing(means, of_models)
    tested = ranked[:MOST_TESTED]
    known = [mean for row in tested.tolist() if (mean := means[0][row]) is not None]
    value, low, high = (np.array([getattr(mean, name) for mean in known]) for name in ("value", "low", "high"))
    rated = (~np.isnan(labels[0])).sum(axis=1)[tested]
    a, b = np.triu_indices(len(known), 1)
    differences = scenario_differences.corrected(a, b, value[a] - value[b], _p(value, low, high, rated, a, b))
    down = np.hypot(value - low, high[0] - value[0])
    up = np.hypot(high - value, value[0] - low[0])
    apart = value - value[0]
    first = Intervals(apart, np.maximum(apart - down, -1.0), np.minimum(apart + up, 1.0), np.minimum(rated, rated[0]))
    return Scores(means, of_models, ranked, differences, first)


def _ranked(composites: Sequence[Mean | None]) -> Ints:
    """Rows with a score, the best first; equal ones in their order."""
    having = [(-mean.value, row) for row, mean in enumerate(composites) if mean is not None]
    return np.array([row for _, row in sorted(having)], dtype=np.int64)


def _drawn(people: Said, asked: Asked, order: Ints, shape: Shape) -> Floats:
    """People's scores (metrics, rows, scenarios) of scenarios that are drawn, NaN elsewhere."""
    prompts, scenarios, repeats = shape
    rows = (people.shares.shape[1] * prompts, scenarios * repeats)
    rated, answered = people.scored.reshape(rows), asked.answered.reshape(rows)
    places = np.where(answered, order.reshape(rows), np.iinfo(np.int64).max)
    gap = np.where(answered & ~rated, places, np.iinfo(np.int64).max).min(axis=1)
    drawn = answered & rated & (places < gap[:, None])
    whole = (drawn | ~answered).reshape(*rows[:1], scenarios, repeats).all(axis=2)
    shares = np.where(asked.answered, people.shares, np.nan)
    found: Floats = np.where(whole, by_row(shares, shape), np.nan)
    return found


def _combined(labels: Floats, judged: Floats) -> Mean | None:
    if np.count_nonzero(~np.isnan(labels)) < LEAST_RATED:
        return None
    return _estimated(labels.tobytes(), judged.tobytes())


@lru_cache(maxsize=8_192)
def _estimated(labels: bytes, judged: bytes) -> Mean:
    """With an interval over scenarios like these, as of a judge and of people alone, where the estimate's own one is
    over exactly these: the judge's mean over them is then a draw, too.

    The estimate takes a part of a millisecond: too long for hundreds of rows with their criteria at each read, of which
    a new rating changes one."""
    said = np.frombuffer(judged)
    found = prediction_powered.combined(np.frombuffer(labels), said)
    down, up = found.spread.ends(found.labels, math.inf)
    unrated = 1 - found.labels / found.items
    of_judge = found.weight / unrated * float(np.nanstd(said)) / math.sqrt(found.items) if found.weight else 0.0
    low, high = (math.hypot(end, Z95 * of_judge) for end in (down, up))
    return Mean(found.mean, max(0.0, found.mean - low), min(1.0, found.mean + high), found.items)


def _over_prompts(prompts: Sequence[Mean | None]) -> Mean | None:
    """The ratings of the prompts are independent draws."""
    known = [mean for mean in prompts if mean is not None]
    if len(known) < len(prompts):
        return None
    value = sum(mean.value for mean in known) / len(known)
    down = float(np.hypot.reduce([mean.value - mean.low for mean in known])) / len(known)
    up = float(np.hypot.reduce([mean.high - mean.value for mean in known])) / len(known)
    return Mean(value, max(0.0, value - down), min(1.0, value + up), max(mean.n for mean in known))


def _p(value: Floats, low: Floats, high: Floats, rated: Ints, a: Ints, b: Ints) -> Floats:
    """Two-sided p at which the interval of a difference would end at 0, by Student's t for the row with fewer
    ratings."""
    difference = value[a] - value[b]
    first, second = np.where(difference > 0, a, b), np.where(difference > 0, b, a)
    width = np.hypot(value[first] - low[first], high[second] - value[second])
    degrees = np.maximum(np.minimum(rated[a], rated[b]) - 2, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, np.abs(difference) / width) * student_quantile(0.975, degrees)
    found: Floats = np.minimum(1.0, 2 * student_tail(t, degrees))
    return found


def _nothing(means: Sequence[Sequence[Mean | None]], of_models: Sequence[Mean | None]) -> Scores:
    none, places = np.zeros(0), np.zeros(0, dtype=np.int64)
    return Scores(
        means, of_models, places, Differences(places, places, none, none), Intervals(none, none, none, places)
    )
