"""How long it takes to compare runs, once their rows are read: every difference, test and interval."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks import report
from benchmarks.report import Finding
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import Confusion, Means, Metric, TaskRows

SUBJECTS, ITEMS, MODELS = 57, 14_042, 10
_ACCURACY, _MATTHEWS, _F1 = "accuracy", "matthews_correlation", "f1"
_GLUE = {
    "cola": (1_043, (_MATTHEWS,)),
    "sst2": (872, (_ACCURACY,)),
    "mrpc": (408, (_F1, _ACCURACY)),
    "qqp": (40_430, (_F1, _ACCURACY)),
    "mnli": (9_815, (_ACCURACY,)),
    "qnli": (5_463, (_ACCURACY,)),
    "rte": (277, (_ACCURACY,)),
    "wnli": (71, (_ACCURACY,)),
}
_LABELS = ("no", "yes")
_RIGHT, _UNREAD = 0.8, 0.01
_ROUNDS = 5


def comparing(_: Path) -> list[Finding]:
    rng, terms = default_rng(0), Terms()
    pair, pairs = [(0, 1)], list(combinations(range(MODELS), 2))
    mmlu = [_task(rng, f"subject {i}", ITEMS // SUBJECTS, (_ACCURACY,), MODELS) for i in range(SUBJECTS)]
    glue = [_task(rng, name, n, metrics, 2) for name, (n, metrics) in _GLUE.items()]
    table = [_task(rng, "table", ITEMS, (_MATTHEWS,), 2)]

    def whole(tasks: Sequence[TaskRows], between: Sequence[tuple[int, int]]) -> float:
        def work() -> None:
            task_differences(tasks, between, terms)
            suite_differences([[task] for task in tasks], between, terms)

        return _median_ms(work)

    return [
        report.at_most(f"{MODELS} models on {SUBJECTS} tasks, accuracy", whole(mmlu, pairs), "ms", 600),
        report.at_most(f"two models on {SUBJECTS} tasks, accuracy", whole(mmlu, pair), "ms", 100),
        report.at_most("two models on GLUE's tasks of labels", whole(glue, pair), "ms", 200),
        report.at_most(f"two models, Matthews correlation of {ITEMS:,} items", whole(table, pair), "ms", 250),
    ]


def _task(rng: Generator, name: str, n: int, metrics: Sequence[str], models: int) -> TaskRows:
    """Right in four of five items, and unread now and then; items that were answered alike are one row."""
    references = rng.integers(0, 2, (n, 1))
    said = np.where(rng.random((n, models)) < _RIGHT, references, 1 - references)
    said[rng.random((n, models)) < _UNREAD] = -1
    rows, counts = np.unique(np.concatenate([references, said], axis=1), axis=0, return_counts=True)
    references, predictions = rows[:, 0], rows[:, 1:]
    found: dict[str, Metric] = {}
    for metric in metrics:
        if metric == _ACCURACY:
            right = (predictions == references[:, None]).astype(float)
            found[metric] = Means(right, np.ones(len(rows)))
        else:
            found[metric] = Confusion(metric, _LABELS[1], _LABELS, references, predictions)
    return TaskRows(name, counts.astype(float), found)


def _median_ms(work: Callable[[], None]) -> float:
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)
