"""Metrics against scikit-learn and scipy on tasks of the published sizes and class shares, some items unanswered."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from services.results.scores import aggregation
from services.results.scores.aggregation import Pairs, TaskData
from services.results.statistics.metric_values import Cell
from touchstone.v1.suite_pb2 import MetricSpec

NONE = "(no answer)"
# Items and the share of each class in the published split.
SHAPES = {
    "cola": (1043, {"unacceptable": 0.309, "acceptable": 0.691}),
    "mrpc": (408, {"not_equivalent": 0.316, "equivalent": 0.684}),
    "qqp": (40430, {"not_duplicate": 0.632, "duplicate": 0.368}),
    "cb": (56, {"entailment": 0.41, "contradiction": 0.5, "neutral": 0.09}),
    "wnli": (71, {"not_entailment": 0.563, "entailment": 0.437}),
    "multirc": (4848, {"no": 0.572, "yes": 0.428}),
    "axb": (1104, {"entailment": 0.417, "not_entailment": 0.583}),
}


def answers(task: str, skill: float) -> tuple[list[str], list[str]]:
    """References, and what a model of this skill says, now and then nothing."""
    items, shares = SHAPES[task]
    rng = np.random.default_rng([items, int(100 * skill)])
    labels = list(shares)
    weights = np.array(list(shares.values())) / sum(shares.values())
    references = rng.choice(labels, items, p=weights)
    said = np.where(rng.random(items) < skill, references, rng.choice(labels, items))
    return references.tolist(), np.where(rng.random(items) < 0.03, NONE, said).tolist()


def measured(references: Sequence[str], said: Sequence[str], positive: str) -> dict[str, float | None]:
    counted = Counter(zip(references, said, strict=True))
    cells = [Cell(r, None if s == NONE else s, r == s, count) for (r, s), count in counted.items()]
    names = ("accuracy", "f1", "f1a", "macro_f1", "matthews_correlation")
    specs = [MetricSpec(metric=name, positive_label=positive) for name in names]
    found = aggregation.measure(TaskData("t", cells), specs, resamples=50)
    return {name: found.estimates[name].value for name in names}


@pytest.mark.parametrize("skill", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("task", SHAPES)
def test_class_metrics_equal_scikit_learn(task: str, skill: float) -> None:
    references, said = answers(task, skill)
    labels = list(SHAPES[task][1])
    positive = labels[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "accuracy": sk.accuracy_score(references, said),
            "macro_f1": sk.f1_score(references, said, labels=labels, average="macro", zero_division=0),
            "matthews_correlation": sk.matthews_corrcoef(references, said),
        }
        if len(labels) == 2:
            # An unanswered item counts on the wrong side.
            filled = [labels[r == labels[0]] if s == NONE else s for r, s in zip(references, said, strict=True)]
            expected["f1"] = expected["f1a"] = sk.f1_score(references, filled, pos_label=positive)
    found = measured(references, said, positive)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_correlations_equal_scipy_with_the_ties_of_similarity_scores(digits: int) -> None:
    rng = np.random.default_rng(digits)
    # As the Hub has STS-B's scores: 32-bit floats in steps of a fifth or a quarter.
    targets = rng.choice(np.round(np.arange(0, 5.01, 0.2), 1), 1500).astype(np.float32).astype(np.float64)
    values = np.clip(targets + rng.normal(0, 1, 1500), 0, 5).round(digits)
    pairs = Pairs(values, targets, np.ones(1500, bool), np.arange(1500), 1500)
    specs = [MetricSpec(metric=name) for name in ("pearson", "spearman")]
    found = aggregation.measure(TaskData("t", pairs=pairs), specs, resamples=50).estimates
    assert found["pearson"].value == pytest.approx(stats.pearsonr(values, targets).statistic, abs=1e-9)
    assert found["spearman"].value == pytest.approx(stats.spearmanr(values, targets).statistic, abs=1e-9)
