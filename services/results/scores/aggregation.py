"""From counted items to a task's metrics with their intervals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np
import numpy.typing as npt

from services.results.scores import influence, means, metric_kinds
from services.results.scores.influence import ClusterCells, Moves
from services.results.scores.means import Lost, Scores
from services.results.statistics import metric_values, resampling
from services.results.statistics.intervals import clustered_interval, confusion_interval
from services.results.statistics.metric_values import Cell, Estimate, Floats, Ints
from touchstone.v1.suite_pb2 import MetricSpec

RESAMPLES = 10_000
"""Resamples behind a final interval."""
LIVE_RESAMPLES = 500
"""Resamples behind the interval of a running job, which is requested again and again."""

_SEED = 20_261_120
_BOTH_SIGNS = (-1.0, 1.0)
_NO_ITEMS = Estimate(None, 0, undefined_reason="no items")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Predicted and right numbers in item order; an unanswered item's value is the train split's mean.

    `clusters` numbers, from 0, the `items`, or the passages that they share. Several answers to one item are pairs of
    one cluster: averaging them first would measure an ensemble instead of the model.
    """

    values: Floats
    targets: Floats
    answered: npt.NDArray[np.bool_]
    clusters: Ints
    items: int


@dataclass(frozen=True, slots=True)
class TaskData:
    """What a task's metrics are computed from.

    `cells` count the items of a class task, `scores` are for metrics that are means (accuracy's may come from `cells`),
    `pairs` for a correlation task. `clustered`: items share passages, or have several answers. Then, and where means
    are averaged, `members` and `scores` distinguish clusters. `planned` counts items, without those that are known to
    have no reference; of their answers, `repeats` each, `lost` have no final outcome.
    """

    task: str
    cells: Sequence[Cell] = ()
    members: ClusterCells | None = None
    scores: Mapping[str, Scores] = field(default_factory=dict)
    pairs: Pairs | None = None
    clustered: bool = False
    planned: int = 0
    repeats: int = 1
    lost: int = 0

    def scores_of(self, spec: MetricSpec) -> Scores:
        if spec.metric not in self.scores and metric_kinds.is_accuracy(spec):
            return means.of_cells(self.cells)
        return self.scores.get(spec.metric, Scores())

    def lost_of(self, spec: MetricSpec, units: int) -> Lost:
        """The losses for a metric with this many units."""
        if spec.rule in metric_kinds.GROUP_RULES:
            return Lost(0, self.lost)
        # A lost answer moves a scored item by its share, or completely where one answer may decide.
        missing = max(0, self.planned - units) if self.lost else 0
        weight = 1.0 if spec.rule in metric_kinds.ANSWER_RULES else 1.0 / self.repeats
        return Lost(missing, weight * max(0, self.lost - missing * self.repeats))


@dataclass(frozen=True, slots=True)
class Measured:
    """A task's metrics in the order shown, and joint resamples of each, all of one length.

    Those in `beside` are reported, and not part of the task's score.
    """

    estimates: Mapping[str, Estimate]
    draws: Mapping[str, Floats]
    beside: frozenset[str] = frozenset()


def measure(data: TaskData, metrics: Sequence[MetricSpec], resamples: int = RESAMPLES) -> Measured:
    """Every metric of a task, in the order shown.

    The metrics of one task are resampled together, so that an average over them has the right spread.
    Raises ValueError for a metric that cannot be computed.
    """
    metric_kinds.check(metrics)
    # A stream of random numbers per task: tasks stay independent, and one task's numbers do not depend on the others.
    rng = np.random.default_rng([_SEED, crc32(data.task.encode())])
    estimates: dict[str, Estimate] = {}
    draws: dict[str, Floats] = {}
    if correlations := [spec.metric for spec in metrics if metric_kinds.is_correlation(spec)]:
        _measure_pairs(data, correlations, resamples, rng, estimates, draws)
    if counted := [spec for spec in metrics if not metric_kinds.is_correlation(spec)]:
        _measure_counted(data, counted, resamples, rng, estimates, draws)
    beside = frozenset(spec.metric for spec in metrics if spec.beside)
    return Measured({spec.metric: estimates[spec.metric] for spec in metrics}, draws, beside)


def _measure_counted(
    data: TaskData,
    metrics: Sequence[MetricSpec],
    resamples: int,
    rng: np.random.Generator,
    estimates: dict[str, Estimate],
    draws: dict[str, Floats],
) -> None:
    """Averages over metrics and tasks use the draws.

    Clustered metrics are drawn from a normal distribution with their joint standard errors, others from the posterior
    of their cells; single means from that of their share, or a normal distribution.
    """
    of_cells = {
        spec.metric: spec.positive_label
        for spec in metrics
        if metric_kinds.is_confusion(spec) or (metric_kinds.is_accuracy(spec) and spec.metric not in data.scores)
    }
    if data.cells and of_cells and not data.clustered:
        draws.update(resampling.draw_cells(data.cells, of_cells, resamples, rng))
    moves: dict[str, Moves] = {}
    spans: dict[str, tuple[float, float] | None] = {}
    alone: dict[str, Scores] = {}
    for spec in metrics:
        name = spec.metric
        if metric_kinds.is_confusion(spec):
            spans[name] = _BOTH_SIGNS if name == metric_values.MATTHEWS else means.UNIT_SPAN
            if data.members is not None and data.cells:
                moves[name] = influence.table_moves(data.cells, data.members, name, spec.positive_label)
            estimates[name] = _table_estimate(data, spec, moves.get(name), draws.get(name))
            continue
        found = data.scores_of(spec)
        spans[name] = found.span
        if len(found.clusters):
            moves[name] = (found.clusters, found.influences())
        elif name not in draws:
            alone[name] = found
        estimates[name] = means.estimate(found, data.lost_of(spec, found.n), clustered=data.clustered)
    if moves:
        values = {name: estimates[name].value or 0.0 for name in moves}
        draws.update(influence.joint_draws(values, moves, spans, resamples, rng))
    for name, found in alone.items():
        draws[name] = _draw_mean(found, estimates[name], resamples, rng)
    for name in estimates:
        draws.setdefault(name, np.zeros(resamples))


def _table_estimate(data: TaskData, spec: MetricSpec, moves: Moves | None, drawn: Floats | None) -> Estimate:
    n = round(sum(cell.count for cell in data.cells))
    if n == 0:
        return _NO_ITEMS
    function = metric_values.confusion_metric(spec.metric, spec.positive_label)
    values = [function(table) for table in (data.cells, *metric_values.answered_otherwise(data.cells))]
    bounds = None if data.lost else (min(values), max(values))
    span = _BOTH_SIGNS if spec.metric == metric_values.MATTHEWS else means.UNIT_SPAN
    answered = [cell for cell in data.cells if cell.prediction is not None]
    if data.clustered and moves is not None:
        spread = means.clustered_estimate(values[0], n, means.clustered_stderr(moves[1]), len(moves[1]), span)
    else:
        stderr = None if drawn is None else means.without_rounding(float(np.std(drawn)))
        low, high = confusion_interval(data.cells, spec.metric, spec.positive_label)
        spread = Estimate(values[0], n, stderr, low, high, "chi-square")
    return replace(spread, bounds=bounds, answered=function(answered) if answered else None)


def _draw_mean(found: Scores, estimate: Estimate, resamples: int, rng: np.random.Generator) -> Floats:
    if estimate.value is None:
        return np.zeros(resamples)
    if found.binary:
        return rng.beta(found.total + 0.5, found.n - found.total + 0.5, resamples)
    drawn = rng.normal(estimate.value, estimate.stderr or 0.0, resamples)
    return drawn if found.span is None else np.clip(drawn, *found.span)


def _measure_pairs(
    data: TaskData,
    metrics: Sequence[str],
    resamples: int,
    rng: np.random.Generator,
    estimates: dict[str, Estimate],
    draws: dict[str, Floats],
) -> None:
    pairs = data.pairs
    if pairs is None:
        for name in metrics:
            estimates[name], draws[name] = _NO_ITEMS, np.zeros(resamples)
        return
    drawn: dict[str, Floats] = {}
    reason = metric_values.undefined_correlation(pairs.values, pairs.targets)
    if not reason:
        drawn = resampling.draw_pairs(pairs.values, pairs.targets, pairs.clusters, metrics, resamples, rng)
    for name in metrics:
        if reason:
            estimate, draws[name] = Estimate(None, pairs.items, undefined_reason=reason), np.zeros(resamples)
        else:
            series, value = drawn[name], _correlation(name, pairs.values, pairs.targets)
            clusters = int(pairs.clusters.max()) + 1
            estimate = _drawn(value, pairs.items, clusters, series[~np.isnan(series)], _BOTH_SIGNS, "bootstrap")
            # In an average an undefined correlation is 0; a shorter series is repeated to the common length.
            draws[name] = np.resize(np.nan_to_num(series), resamples)
        estimates[name] = replace(
            estimate, bounds=_pair_bounds(name, pairs, data.lost), answered=_pair_answered(name, pairs)
        )


def _correlation(name: str, values: Floats, targets: Floats) -> float:
    """0 where it is undefined."""
    if metric_values.undefined_correlation(values, targets):
        return 0.0
    return (metric_values.pearson if name == metric_values.PEARSON else metric_values.spearman)(values, targets)


def _pair_bounds(name: str, pairs: Pairs, lost: int) -> tuple[float, float] | None:
    """As scored, and had every unanswered item been exactly right."""
    if lost:
        return None
    right = np.where(pairs.answered, pairs.values, pairs.targets)
    both = [_correlation(name, values, pairs.targets) for values in (pairs.values, right)]
    return min(both), max(both)


def _pair_answered(name: str, pairs: Pairs) -> float | None:
    values, targets = pairs.values[pairs.answered], pairs.targets[pairs.answered]
    return None if metric_values.undefined_correlation(values, targets) else _correlation(name, values, targets)


def _drawn(
    value: float, n: int, clusters: int, drawn: Floats | None, span: tuple[float, float], method: str
) -> Estimate:
    """Interval with the spread of draws in Wilson's form: percentiles of the draws cover too little.

    `clusters` are independent: items, or groups of dependent items.
    """
    if drawn is None or len(drawn) < 2:
        return Estimate(value, n, method=method)
    stderr = means.without_rounding(float(np.std(drawn)))
    return Estimate(value, n, stderr, *clustered_interval(value, stderr, max(clusters, 2), span), method)


def percentile_interval(value: float, n: int, drawn: Floats | None, method: str) -> Estimate:
    """Percentile interval, stretched where needed to hold the value itself (at a perfect score, for one)."""
    if drawn is None or len(drawn) < 2:
        return Estimate(value, n, method=method)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(value, n, float(np.std(drawn)), min(float(low), value), max(float(high), value), method)
