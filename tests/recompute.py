"""Metrics computed again with scikit-learn and scipy, from exported items and the data set's own rows alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from touchstone.v1 import item_result_pb2, results_service_pb2

Floats = npt.NDArray[np.float64]

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


class Answers:
    """One task's exported items. `positive` is the reference text of the class counted as positive by F1."""

    def __init__(self, items: Sequence[results_service_pb2.StoredItem], positive: str = "") -> None:
        results = [item.result for item in items]
        assert all(r.outcome != item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR for r in results)
        self.results = results
        self.positive = positive
        self.references = [r.reference for r in results]
        answered = item_result_pb2.OUTCOME_ANSWERED
        self.predictions = [r.prediction if r.outcome == answered else NO_ANSWER for r in results]

    @property
    def unparsed(self) -> float:
        """Share of items whose answer could not be read."""
        return sum(r.outcome == item_result_pb2.OUTCOME_UNPARSED for r in self.results) / len(self.results)

    def metric(self, name: str) -> float:
        return _metric(name, self.references, self.predictions, self.pairs(), self.positive)

    def pairs(self) -> tuple[Floats, Floats]:
        """(predicted, right) numbers of a regression task; empty for classes."""
        statistics = [r.statistics for r in self.results if "value" in r.statistics]
        return np.array([s["value"] for s in statistics]), np.array([s["target"] for s in statistics])

    def wilson(self) -> tuple[float, float]:
        right = sum(r == p for r, p in zip(self.references, self.predictions, strict=True))
        interval = stats.binomtest(right, len(self.references)).proportion_ci(0.95, method="wilson")
        return float(interval.low), float(interval.high)

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
        return float(np.std([matthews_corrcoef(wanted, said, sample_weight=shares) for shares in drawn]))


def _metric(
    name: str, references: Sequence[str], predictions: Sequence[str], pairs: tuple[Floats, Floats], positive: str
) -> float:
    if name in ("pearson", "spearman"):
        return _correlation(name, *pairs)
    if name == "accuracy":
        return float(accuracy_score(references, predictions))
    if name == "matthews_correlation":
        return float(matthews_corrcoef(references, predictions))
    return float(f1_score(*_sides(references, predictions, positive), zero_division=0))


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
