"""Runs that are drawn from known truths: what the statistics must find out again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from services.results.paired.pairs.rows import (
    ClusteredConfusion,
    Column,
    Confusion,
    Correlation,
    Means,
    Metric,
    TaskRows,
    binary_rows,
)
from services.results.statistics import metric_values
from services.results.statistics.metric_values import Cell, Floats, Ints

NO_YES = ("no", "yes")
THREE = ("contradiction", "entailment", "neutral")


@dataclass(frozen=True)
class ClassTask:
    """Items of a label `base` (labels,), right with a chance that differs from item to item, unread once in 200 times.

    `rates` (models, difficulties) are the chances of each model at each difficulty, which are equally frequent: models
    are wrong together where it is low for both. `lean` moves wrong answers of a model towards the last label.
    """

    name: str
    n: int
    labels: tuple[str, ...]
    base: Sequence[float]
    rates: Floats
    metrics: tuple[str, ...] = ("accuracy",)
    lean: Sequence[float] = (0.0, 0.0)

    def chances(self) -> Floats:
        """(labels, answers of A, answers of B); the first answer is none."""
        labels = len(self.labels)
        table = np.zeros((labels, labels + 1, labels + 1))
        for level in range(self.rates.shape[1]):
            for y in range(labels):
                a, b = (self._answers(model, level, y) for model in (0, 1))
                table[y] += self.base[y] * np.outer(a, b) / self.rates.shape[1]
        return table

    def _answers(self, model: int, level: int, y: int) -> Floats:
        labels = len(self.labels)
        found = np.full(labels + 1, 0.0)
        found[0] = 0.005
        # A lean towards the last label makes the others harder.
        right = self.rates[model, level] + self.lean[model] * (1 if y == labels - 1 else -1)
        right = float(np.clip(right, 0.01, 0.985))
        found[1:] = (1 - found[0] - right) / (labels - 1)
        found[y + 1] = right
        return found

    def draw(self, rng: Generator) -> TaskRows:
        chances = self.chances()
        counts = rng.multinomial(self.n, (chances / chances.sum()).ravel())
        occurring = np.flatnonzero(counts)
        y, a, b = np.unravel_index(occurring, chances.shape)
        predictions = np.stack([a - 1, b - 1], axis=1).astype(np.int64)
        right = (predictions == y[:, None]).astype(float)
        metrics: dict[str, Metric] = {}
        for name in self.metrics:
            if name == metric_values.ACCURACY:
                metrics[name] = Means(right, np.ones(len(y)))
            else:
                metrics[name] = Confusion(name, self.labels[-1], self.labels, y.astype(np.int64), predictions)
        return TaskRows(self.name, counts[occurring].astype(float), metrics)

    def truth(self, name: str) -> float:
        """A − B of a metric of infinitely many items."""
        chances = self.chances()
        values = []
        for axis in (2, 1):
            cells = [
                Cell(self.labels[y], None if p == 0 else self.labels[p - 1], p == y + 1, float(share))
                for (y, p), share in np.ndenumerate(chances.sum(axis=axis))
            ]
            if name == metric_values.ACCURACY:
                values.append(sum(cell.count for cell in cells if cell.correct) / float(chances.sum()))
            else:
                values.append(metric_values.confusion_metric(name, self.labels[-1])(cells))
        return values[0] - values[1]


@dataclass(frozen=True)
class OneTable:
    """One model's table: `base` (labels,) are the labels' shares, `answers` (labels, labels) the chances of each answer
    to each label, which need not add up to 1 exactly."""

    base: Sequence[float]
    answers: Floats

    @classmethod
    def accurate(cls, base: Sequence[float], accuracy: float) -> OneTable:
        """Wrong answers are spread over the other labels."""
        labels = len(base)
        answers = np.full((labels, labels), (1 - accuracy) / (labels - 1))
        np.fill_diagonal(answers, accuracy)
        return cls(base, answers)

    @classmethod
    def guessing(cls, base: Sequence[float], said: Sequence[float]) -> OneTable:
        """The same chances of each answer, whatever is right."""
        return cls(base, np.tile(said, (len(base), 1)))

    def draw(self, rng: Generator, n: int) -> list[Cell]:
        return self._cells(rng.multinomial(n, self._chances().ravel()))

    def truth(self, metric: str) -> float:
        """Of infinitely many items; the last label is positive."""
        cells = self._cells(self._chances().ravel())
        if metric == metric_values.ACCURACY:
            return sum(cell.count for cell in cells if cell.correct)
        return metric_values.confusion_metric(metric, self.positive)(cells)

    @property
    def positive(self) -> str:
        return f"{len(self.base) - 1:02}"

    def _chances(self) -> Floats:
        table = np.array(self.base)[:, None] * self.answers
        found: Floats = table / table.sum()
        return found

    def _cells(self, counts: Floats | Ints) -> list[Cell]:
        shape = self.answers.shape
        return [
            Cell(f"{y:02}", f"{p:02}", y == p, float(count))
            for (y, p), count in np.ndenumerate(counts.reshape(shape))
            if count
        ]


@dataclass(frozen=True)
class Unlike:
    """Two models that say yes with chances `a` and `b` (where that is right, where it is wrong), to a `base` of items
    that are yes. Their labels may be as different as half of the items and nearly all of them. In a share `together` of
    the items the model that says yes less often does so only where the other does."""

    n: int
    a: Sequence[float]
    b: Sequence[float]
    base: float = 0.69
    together: float = 0.0

    def chances(self, *, exchanged: bool = False) -> Floats:
        """(labels, answers of A, answers of B); `exchanged`: which model is which is drawn for every item."""
        table = np.zeros((2, 2, 2))
        for y, share in enumerate((1 - self.base, self.base)):
            a, b = self.a[1 - y], self.b[1 - y]
            both = self.together * min(a, b) + (1 - self.together) * a * b
            table[y] = share * np.array([[1 - a - b + both, b - both], [a - both, both]])
        found: Floats = (table + table.transpose(0, 2, 1)) / 2 if exchanged else table
        return found

    def draw(self, rng: Generator, metric: str, *, exchanged: bool = False) -> TaskRows:
        counts = rng.multinomial(self.n, self.chances(exchanged=exchanged).ravel())
        occurring = np.flatnonzero(counts)
        y, a, b = np.unravel_index(occurring, (2, 2, 2))
        table = Confusion(metric, "yes", NO_YES, y.astype(np.int64), np.stack([a, b], axis=1).astype(np.int64))
        return TaskRows("cola", counts[occurring].astype(float), {metric: table})

    def truth(self, metric: str) -> float:
        """A − B of a metric of infinitely many items."""
        values = []
        for axis in (2, 1):
            table = np.ndenumerate(self.chances().sum(axis=axis))
            cells = [Cell(NO_YES[y], NO_YES[p], p == y, float(share)) for (y, p), share in table]
            values.append(metric_values.confusion_metric(metric, "yes")(cells))
        return values[0] - values[1]


def alike(rates: Sequence[float]) -> Floats:
    """Two runs of one model."""
    return np.array([rates, rates])


def right_and_wrong(rng: Generator, n: int, both: float, only_a: float, only_b: float, name: str = "t") -> TaskRows:
    """Items right in both runs, or in one, with these chances."""
    chances = [max(0.0, 1 - both - only_a - only_b), only_a, only_b, both]
    counts, metric = binary_rows(np.arange(4), rng.multinomial(n, chances), 2)
    return TaskRows(name, counts, {"accuracy": metric})


def ratings(rng: Generator, n: int, reliability: Sequence[float] = (0.9, 0.9)) -> TaskRows:
    """Ratings from 0 to 5 with half of their error in common; correlations with the right ones near `reliability`."""
    targets = np.clip(np.round(rng.normal(2.7, 1.5, n) * 5) / 5, 0, 5)
    common, rows, columns = rng.normal(size=n), np.arange(n), []
    for each in reliability:
        error = np.sqrt(0.5) * (common + rng.normal(size=n))
        spread = 1.5 * np.sqrt(1 / each**2 - 1)
        columns.append(Column(np.clip(np.round((targets + spread * error) * 2) / 2, 0, 5), targets, rows))
    pair = tuple(columns)
    return TaskRows("stsb", np.ones(n), {name: Correlation(name, pair) for name in ("pearson", "spearman")})


def passages(
    rng: Generator, clusters: int, questions: int, answers: int, gap: float = 0.0, together: float = 0.8
) -> TaskRows:
    """Questions with several proposed answers on passages that each run reads well or badly (MultiRC).

    `together` is the spread of how well a run reads a passage, in logits; A is better by a `gap` in logits.
    """
    shape = (clusters, questions, answers)
    truth = rng.random(shape) < 0.43
    ease = rng.normal(1.5, 0.8, (clusters, 1, 1)) + rng.normal(0, 1.0, shape)
    shares, exact = [], []
    for side in (gap / 2, -gap / 2):
        logit = ease + side + rng.normal(0, together, (clusters, 1, 1))
        right = rng.random(shape) < 1 / (1 + np.exp(-logit))
        said = np.where(right, truth, ~truth)
        kinds = [(truth & said), (truth & ~said), (~truth & said), (~truth & ~said)]
        shares.append(np.stack([kind.sum(axis=(1, 2)) for kind in kinds], axis=1).astype(float))
        exact.append(right.all(axis=2).sum(axis=1).astype(float))
    cells = (("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no"))
    metrics: dict[str, Metric] = {
        "f1a": ClusteredConfusion("f1a", "yes", cells, np.array(shares)),
        "exact_match": Means(np.stack(exact, axis=1), np.full(clusters, float(questions))),
    }
    return TaskRows("multirc", np.ones(clusters), metrics, clustered=True)


def cluster_answers(
    rng: Generator, clusters: int, size: int, p: Sequence[float], *, binary: bool = True, icc: float = 0.2
) -> Floats:
    """Scores (models, clusters, items) that hang together within clusters: each run has a rate of its own in each.

    `icc` is the correlation of one run's answers within a cluster.
    """
    concentration = 1 / icc - 1
    found = []
    for each in p:
        rates = rng.beta(concentration * each, concentration * (1 - each), (clusters, 1))
        scores = (rng.random((clusters, size)) < rates).astype(float)
        if not binary:
            scores = np.where(rng.random((clusters, size)) < 0.3, rng.random((clusters, size)), scores)
        found.append(scores)
    return np.array(found)


def by_cluster(scores: Floats) -> TaskRows:
    """Of scores (models, clusters, items)."""
    _, clusters, size = scores.shape
    metric = Means(scores.sum(axis=2).T, np.full(clusters, float(size)))
    return TaskRows("record", np.ones(clusters), {"exact_match": metric}, clustered=True)


def by_item(scores: Floats) -> TaskRows:
    """The same as if items had nothing to do with each other."""
    models, clusters, size = scores.shape
    metric = Means(scores.reshape(models, -1).T, np.ones(clusters * size))
    return TaskRows("record", np.ones(clusters * size), {"exact_match": metric})


def within(low: float | None, truth: float, high: float | None) -> bool:
    assert low is not None
    assert high is not None
    return low - 1e-12 <= truth <= high + 1e-12
