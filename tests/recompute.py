"""Metrics computed again with scikit-learn and scipy, from exported items and the data set's own rows alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone.v1.suite_pb2 import MetricSpec

Floats = npt.NDArray[np.float64]
Row = np.ndarray[tuple[int], np.dtype[np.float64]]
Unit = tuple[str, float]
"""The cluster and the score of an item, or of a group of items."""

GLUE_METRICS: dict[str, tuple[str, ...]] = {
    "cola": ("matthews_correlation", "accuracy"),
    "sst2": ("accuracy",),
    "mrpc": ("f1", "accuracy"),
    "qqp": ("f1", "accuracy"),
    "stsb": ("pearson", "spearman"),
    "mnli": ("accuracy",),
    "mnli_mismatched": ("accuracy",),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "wnli": ("accuracy",),
}
NO_ANSWER = "(no answer)"
RESAMPLES = 800
_STEP = 1e-6


class Answers:
    """One task's exported items. `positive` is the reference text of the class counted as positive by F1.

    Rows of a dataset without a reference have no statistics: they are no part of any metric, `unscored` counts them.
    """

    def __init__(self, items: Sequence[results_service_pb2.StoredItem], positive: str = "") -> None:
        assert all(item.result.outcome != item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR for item in items)
        results = [item.result for item in items if item.result.statistics]
        self.unscored = len(items) - len(results)
        self.results = results
        self.positive = positive
        self.references = [r.reference for r in results]
        self.predictions = [r.prediction if _answered(r) else NO_ANSWER for r in results]
        answers = Counter(r.item for r in results)
        self.items = len(answers)
        self._weights = np.array([1 / answers[r.item] for r in results])
        self._clusters = [_cluster(r) for r in results]

    @property
    def unparsed(self) -> float:
        """Share of items whose answer could not be read."""
        return sum(r.outcome == item_result_pb2.OUTCOME_UNPARSED for r in self.results) / len(self.results)

    def metric(self, name: str) -> float:
        return self.of(MetricSpec(metric=name, positive_label=self.positive))

    def of(self, spec: MetricSpec) -> float:
        """A metric by its rule. Of several answers to an item each counts its part."""
        if not spec.rule:
            return self._weighted(spec, self._weights)
        return float(np.mean([score for _, score in self.units(spec)]))

    def units(self, spec: MetricSpec) -> list[Unit]:
        """What a metric with a rule is the mean of."""
        gathered: dict[float, list[item_result_pb2.ItemResult]] = defaultdict(list)
        for result in self.results:
            gathered[result.statistics[spec.over] if spec.over else result.item].append(result)
        units = []
        for members in gathered.values():
            if spec.rule == MetricSpec.RULE_EQUAL and len({r.item for r in members}) < 2:
                continue
            units.append((min(_cluster(r) for r in members), _unit_score(spec, members)))
        return units

    def clustered_standard_error(self, spec: MetricSpec) -> float:
        """What each cluster of items moves the metric by, squared and added up: for a mean by counting, for any other
        metric by weighing the cluster's items a little more and a little less."""
        if spec.rule:
            units = self.units(spec)
            mean = float(np.mean([score for _, score in units]))
            moved: dict[str, float] = defaultdict(float)
            for cluster, score in units:
                moved[cluster] += (score - mean) / len(units)
            return math.sqrt(sum(m * m for m in moved.values()))
        total = 0.0
        for cluster in set(self._clusters):
            inside = np.array([c == cluster for c in self._clusters])
            more, less = (self._weighted(spec, self._weights * (1 + s * inside)) for s in (_STEP, -_STEP))
            total += ((more - less) / (2 * _STEP)) ** 2
        return math.sqrt(total)

    def pairs(self) -> tuple[Floats, Floats]:
        """(predicted, right) numbers of a regression task; empty for classes."""
        statistics = [r.statistics for r in self.results if "value" in r.statistics]
        return np.array([s["value"] for s in statistics]), np.array([s["target"] for s in statistics])

    def wilson(self) -> tuple[float, float]:
        right = sum(r == p for r, p in zip(self.references, self.predictions, strict=True))
        interval = stats.binomtest(right, len(self.references)).proportion_ci(0.95, method="wilson")
        return float(interval.low), float(interval.high)

    def student(self, spec: MetricSpec) -> tuple[float, float]:
        """Of a mean of independent items that are more or less right, within [0, 1]."""
        scores = [score for _, score in self.units(spec)]
        interval = stats.ttest_1samp(scores, 0).confidence_interval(0.95)
        return max(0.0, float(interval.low)), min(1.0, float(interval.high))

    def chi_square(self, name: str) -> tuple[float, float]:
        return chi_square_interval(name, self.references, self.predictions, self.positive)

    def standard_error(self, name: str) -> float:
        """√(p(1−p)/n) for accuracy; the spread under resampling for all others, so only about equal to another's.

        F1 and MCC resample the table of (reference, prediction) from Dirichlet(count + ½); correlations resample pairs.
        """
        n = len(self.references)
        if name == "accuracy":
            p = self.metric(name)
            return math.sqrt(p * (1 - p) / n)
        rng = np.random.default_rng(7)
        if name in ("pearson", "spearman"):
            values, targets = self.pairs()
            draws = (rng.integers(0, n, n) for _ in range(RESAMPLES))
            return float(np.std([_correlation(name, values[d], targets[d]) for d in draws]))
        if name == "f1":
            table = Counter(zip(*_sides(self.references, self.predictions, self.positive), strict=True))
            cells = [(True, True), (False, True), (True, False), (False, False)]
            hits, false, missed, _ = rng.dirichlet([table[cell] + 0.5 for cell in cells], RESAMPLES).T
            return float(np.std(2 * hits / (2 * hits + false + missed)))
        counted = Counter(zip(self.references, self.predictions, strict=True))
        labels = sorted({label for pair in counted for label in pair} - {NO_ANSWER})
        pairs = sorted({*counted, *product(labels, labels)})
        wanted, said = zip(*pairs, strict=True)
        drawn = rng.dirichlet([counted[pair] + 0.5 for pair in pairs], RESAMPLES)
        return float(np.std([_table_metric(name, wanted, said, shares, "") for shares in drawn]))

    def _weighted(self, spec: MetricSpec, weights: Floats) -> float:
        if spec.metric in ("pearson", "spearman"):
            return _correlation(spec.metric, *self.pairs())
        return _table_metric(spec.metric, self.references, self.predictions, weights, spec.positive_label)


def chi_square_interval(
    name: str, references: Sequence[str], predictions: Sequence[str], positive: str
) -> tuple[float, float]:
    """The range of F1 or MCC over all tables of shares that a chi-square test at 5 % does not reject, by an
    optimiser. No answer is a prediction `NO_ANSWER`."""
    labels = sorted({*references, *predictions} - {NO_ANSWER})
    if name in ("f1", "f1a"):
        labels = [positive, f"not {positive}"]
        references, predictions = (
            [labels[not side] for side in both] for both in _sides(references, predictions, positive)
        )
    counted = Counter(zip(references, predictions, strict=True))
    pairs = sorted({*counted, *product(labels, labels)})
    wanted, said = zip(*pairs, strict=True)
    counts = np.array([float(counted[pair]) for pair in pairs])
    return chi_square_range(counts, lambda shares: _table_metric(name, wanted, said, shares, positive))


def chi_square_range(counts: Floats, value: Callable[[Floats], float]) -> tuple[float, float]:
    """The range of a value of shares that a chi-square test at 5 % does not reject by the counts, by an optimiser."""
    seen, room = counts / counts.sum(), stats.chi2.ppf(0.95, 1) / counts.sum()
    # In such steps from what was seen all directions are about as long.
    step = np.where(counts > 0, np.sqrt(room * seen), room)

    def shares(way: Row) -> Floats:
        found: Floats = np.maximum(seen + step * way, 1e-13)
        return found

    def left(way: Row) -> float:
        expected = shares(way)
        return float(1 - ((seen - expected) ** 2 / expected).sum() / room)

    def surplus(way: Row) -> float:
        return float((shares(way).sum() - 1) / np.sqrt(room))

    ends = [value(seen)]

    def loss(way: Row, sign: float) -> float:
        return float(sign * (value(shares(way)) - ends[0]) / np.sqrt(room))

    for sign, more in product((-1.0, 1.0), (0.1, 1.0)):
        start = (counts + more) / (counts + more).sum()
        found = optimize.minimize(
            loss,
            (start - seen) / step,
            args=(sign,),
            method="SLSQP",
            bounds=optimize.Bounds(-seen / step, np.full(len(seen), np.inf)),
            constraints=[{"type": "ineq", "fun": left}, {"type": "eq", "fun": surplus}],
            options={"maxiter": 200, "ftol": 1e-6},
        )
        if left(found.x) > -1e-3:
            ends.append(value(shares(found.x)))
    return min(ends), max(ends)


def _answered(result: item_result_pb2.ItemResult) -> bool:
    return result.outcome == item_result_pb2.OUTCOME_ANSWERED


def _cluster(result: item_result_pb2.ItemResult) -> str:
    return f"passage {result.group}" if result.group else f"item {result.item}"


def _unit_score(spec: MetricSpec, members: Sequence[item_result_pb2.ItemResult]) -> float:
    """Of one item's answers, or of one group's items; a group with several answers per item by its repeats' mean."""
    found = [r.statistics.get(spec.statistic, 0.0) for r in members]
    if spec.rule == MetricSpec.RULE_MEAN:
        return float(np.mean(found))
    if spec.rule == MetricSpec.RULE_ANY:
        return float(1 in found)
    if spec.rule == MetricSpec.RULE_MAJORITY:
        votes = Counter(r.prediction for r in members if _answered(r))
        top = [p for p, count in votes.items() if count == max(votes.values())]
        right = {r.prediction: s for r, s in zip(members, found, strict=True) if _answered(r)}
        return float(np.mean([right[p] == 1 for p in top])) if top else 0.0
    scores = []
    for repeat in {r.repeat for r in members}:
        if spec.rule == MetricSpec.RULE_ALL:
            scores.append(all(s == 1 for r, s in zip(members, found, strict=True) if r.repeat == repeat))
        else:
            here = [r for r in members if r.repeat == repeat]
            scores.append(all(map(_answered, here)) and len({r.prediction for r in here}) == 1)
    return float(np.mean(scores))


def _table_metric(
    name: str, references: Sequence[str], predictions: Sequence[str], weights: Floats, positive: str
) -> float:
    if name == "accuracy":
        return float(accuracy_score(references, predictions, sample_weight=weights))
    if name == "matthews_correlation":
        return float(matthews_corrcoef(references, predictions, sample_weight=weights))
    if name == "macro_f1":
        labels = sorted({*references, *predictions} - {NO_ANSWER})
        found = f1_score(
            references, predictions, labels=labels, average="macro", sample_weight=weights, zero_division=0
        )
        return float(found)
    wanted, said = _sides(references, predictions, positive)
    return float(f1_score(wanted, said, sample_weight=weights, zero_division=0))


def _sides(references: Sequence[str], predictions: Sequence[str], positive: str) -> tuple[list[bool], list[bool]]:
    """Whether each item is positive, and was said to be. No answer is the wrong answer: a false positive for a negative
    item, a false negative for a positive one."""
    wanted = [reference == positive for reference in references]
    return wanted, [not w if p == NO_ANSWER else p == positive for w, p in zip(wanted, predictions, strict=True)]


def _correlation(name: str, values: Floats, targets: Floats) -> float:
    if name == "pearson":
        return float(stats.pearsonr(values, targets).statistic)
    return float(stats.spearmanr(values, targets).statistic)


def suite_score(metrics: Mapping[str, Mapping[str, float]]) -> float:
    """Mean over tasks of the mean of each task's metrics; the two MNLI tasks count as one."""
    tasks = {task: float(np.mean(list(values.values()))) for task, values in metrics.items()}
    mnli = [tasks.pop(task) for task in ("mnli", "mnli_mismatched") if task in tasks]
    return float(np.mean([*tasks.values(), *([float(np.mean(mnli))] if mnli else [])]))


def score_over_items(scores: Mapping[str, float], items: Mapping[str, int]) -> float:
    """Mean over tasks of their scores, each counting by its items."""
    return math.fsum(scores[task] * items[task] for task in scores) / sum(items[task] for task in scores)
