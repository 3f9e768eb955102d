"""From counted items to a task's metrics, and from tasks to a suite's score, with intervals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import numpy.typing as npt

from services.results import resampling, statistics
from services.results.statistics import Cell, Estimate, Floats

RESAMPLES = 10_000
"""Resamples behind a final interval."""
LIVE_RESAMPLES = 500
"""Resamples behind the interval of a running job, which is asked for again and again."""

_SEED = 20_261_120


@dataclass(frozen=True, slots=True)
class Pairs:
    """Predicted and right numbers in item order; an unanswered item's value is the train split's mean."""

    values: Floats
    targets: Floats
    answered: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TaskData:
    """What a task's metrics are computed from.

    `cells` count the items of a class task; `pairs` are those of a correlation task. `lost` items are planned but have
    no final outcome: missing or infrastructure errors.
    """

    task: str
    cells: Sequence[Cell] = ()
    pairs: Pairs | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """A task's metrics in the order shown, and joint resamples of each, all of one length."""

    estimates: Mapping[str, Estimate]
    draws: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class _Score:
    value: float
    n: int
    bounds: tuple[float, float] | None
    draws: Floats


def measure(data: TaskData, metrics: Mapping[str, str], resamples: int = RESAMPLES) -> Measured:
    """Every metric of a task. `metrics` maps names to the positive label, in the order shown.

    The metrics of one task are resampled together, so that an average over them has the right spread.
    Raises ValueError for a metric that is not known.
    """
    unknown = sorted(set(metrics) - statistics.METRICS)
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}")
    # A stream of random numbers per task: tasks stay independent, and one task's numbers do not hang on the others.
    rng = np.random.default_rng([_SEED, crc32(data.task.encode())])
    estimates: dict[str, Estimate] = {}
    draws: dict[str, Floats] = {}
    correlations = [name for name in metrics if name in statistics.CORRELATIONS]
    if correlations:
        _measure_pairs(data, correlations, resamples, rng, estimates, draws)
    counted = {name: label for name, label in metrics.items() if name not in statistics.CORRELATIONS}
    if counted:
        _measure_cells(data, counted, resamples, rng, estimates, draws)
    return Measured({name: estimates[name] for name in metrics}, draws)


def average(groups: Sequence[Sequence[Measured]], metric: str = "") -> Estimate | None:
    """Unweighted mean over groups of the mean over a group's tasks of the mean of a task's metrics.

    A group is one task, or several that count once (MNLI matched and mismatched). `metric` restricts it to one metric
    and to the tasks that have it. An undefined value counts as 0. None when there is no task, or one without items.
    """
    chosen = [[m for m in group if not metric or metric in m.estimates] for group in groups]
    chosen = [group for group in chosen if group]
    estimates = [e for group in chosen for m in group for name, e in m.estimates.items() if metric in ("", name)]
    if not estimates or any(e.n == 0 for e in estimates):
        return None
    score = _mean([_mean([_task_score(m, metric) for m in group]) for group in chosen])
    reasons = sorted({e.undefined_reason for e in estimates if e.undefined_reason})
    whole = _interval(score.value, score.n, score.draws, "stratified")
    return replace(whole, bounds=score.bounds, undefined_reason="; ".join(reasons))


def _task_score(measured: Measured, metric: str) -> _Score:
    names = [metric] if metric else list(measured.estimates)
    scores = []
    for name in names:
        estimate = measured.estimates[name]
        value = 0.0 if estimate.value is None else estimate.value
        scores.append(_Score(value, estimate.n, estimate.bounds, measured.draws[name]))
    return replace(_mean(scores), n=scores[0].n)


def _mean(scores: Sequence[_Score]) -> _Score:
    bounds = [score.bounds for score in scores if score.bounds is not None]
    low, high = (float(np.mean(side)) for side in zip(*bounds, strict=True)) if bounds else (0.0, 0.0)
    return _Score(
        value=float(np.mean([score.value for score in scores])),
        n=sum(score.n for score in scores),
        bounds=(low, high) if len(bounds) == len(scores) else None,
        draws=np.mean([score.draws for score in scores], axis=0),
    )


def _measure_cells(
    data: TaskData,
    metrics: Mapping[str, str],
    resamples: int,
    rng: np.random.Generator,
    estimates: dict[str, Estimate],
    draws: dict[str, Floats],
) -> None:
    cells = data.cells
    n = sum(cell.count for cell in cells)
    if n == 0:
        for name in metrics:
            estimates[name] = Estimate(None, 0, undefined_reason="no items")
            draws[name] = np.zeros(resamples)
        return
    draws.update(resampling.draw_cells(cells, metrics, resamples, rng))
    others = statistics.answered_otherwise(cells)
    for name, positive in metrics.items():
        if name == statistics.ACCURACY:
            correct = sum(cell.count for cell in cells if cell.correct)
            unanswered = sum(cell.count for cell in cells if cell.prediction is None)
            estimates[name] = statistics.accuracy(correct, unanswered, n, data.lost)
            continue
        values = [
            statistics.f1(table, positive) if name == statistics.F1 else statistics.matthews_correlation(table)
            for table in (cells, *others)
        ]
        bounds = None if data.lost else (min(values), max(values))
        estimates[name] = replace(_interval(values[0], n, draws[name], "dirichlet"), bounds=bounds)


def _measure_pairs(
    data: TaskData,
    metrics: Sequence[str],
    resamples: int,
    rng: np.random.Generator,
    estimates: dict[str, Estimate],
    draws: dict[str, Floats],
) -> None:
    if data.pairs is None:
        for name in metrics:
            estimates[name], draws[name] = Estimate(None, 0, undefined_reason="no items"), np.zeros(resamples)
        return
    values, targets = data.pairs.values, data.pairs.targets
    drawn: dict[str, Floats] = {}
    reason = statistics.undefined_correlation(values, targets)
    if not reason:
        drawn = resampling.draw_pairs(values, targets, metrics, resamples, rng)
    for name in metrics:
        if reason:
            estimate, draws[name] = Estimate(None, len(values), undefined_reason=reason), np.zeros(resamples)
        else:
            series, value = drawn[name], _correlation(name, values, targets)
            estimate = _interval(value, len(values), series[~np.isnan(series)], "bootstrap")
            # In an average an undefined correlation is 0; a shorter series is repeated to the common length.
            draws[name] = np.resize(np.nan_to_num(series), resamples)
        estimates[name] = replace(estimate, bounds=_pair_bounds(name, data.pairs, data.lost))


def _correlation(name: str, values: Floats, targets: Floats) -> float:
    """0 where it is undefined."""
    if statistics.undefined_correlation(values, targets):
        return 0.0
    return (statistics.pearson if name == statistics.PEARSON else statistics.spearman)(values, targets)


def _pair_bounds(name: str, pairs: Pairs, lost: int) -> tuple[float, float] | None:
    """As scored, and had every unanswered item been exactly right."""
    if lost:
        return None
    right = np.where(pairs.answered, pairs.values, pairs.targets)
    both = [_correlation(name, values, pairs.targets) for values in (pairs.values, right)]
    return min(both), max(both)


def _interval(value: float, n: int, drawn: Floats, method: str) -> Estimate:
    """Percentile interval, stretched where needed to hold the value itself (at a perfect score, for one)."""
    if len(drawn) < 2:
        return Estimate(value, n, method=method)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(value, n, float(np.std(drawn)), min(float(low), value), max(float(high), value), method)
