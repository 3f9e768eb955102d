"""Whether k models differ at all. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.results.paired.pairs import contributions
from services.results.paired.pairs.contributions import Contributions
from services.results.paired.pairs.difference import Omnibus
from services.results.paired.pairs.rows import Cost, TaskRows, is_binary
from services.results.paired.suite_difference import Groups, chosen_tasks, counted, right_or_wrong
from services.results.statistics.distributions import chi_square_tail

COCHRAN = "Cochran's Q"
SCORES = "Cochran's Q of scores"
_NO_SPREAD = 1e-18


def task_omnibus(task: TaskRows, metric: str, models: Sequence[int]) -> Omnibus | None:
    """One metric of one task; None for costs, and if nothing can be tested."""
    each = task.metrics[metric]
    if isinstance(each, Cost):
        return None
    part = contributions.of_models(each, task.counts, alike=True)
    return _omnibus([part], [1.0], models, COCHRAN if is_binary(each) else SCORES)


def suite_omnibus(groups: Groups, models: Sequence[int], metric: str = "", *, by_items: bool = False) -> Omnibus | None:
    """The suite's score, or one metric's mean over the tasks that have it, as in `suite_differences`."""
    tasks, weights = chosen_tasks(groups, metric, by_items=by_items)
    if len(tasks) == 1 and len(names := tasks[0].names(metric)) == 1:
        return task_omnibus(tasks[0], names[0], models)
    parts = [
        contributions.mean([contributions.of_models(each, task.counts, alike=True) for each in counted(task, metric)])
        for task in tasks
    ]
    binary = by_items and right_or_wrong([counted(task, metric) for task in tasks])
    return _omnibus(parts, weights, models, COCHRAN if binary else SCORES)


def _omnibus(
    parts: Sequence[Contributions], weights: Sequence[float], models: Sequence[int], test: str
) -> Omnibus | None:
    """(k − 1) Σ_j (T_j − T̄)² / Σ_i Σ_j (x_ij − x̄_i)², where T_j is model j's value and x_ij what row i adds to it.

    For right and wrong it is Cochran's Q; for any scores, the same argument applies: each row's scores are
    exchangeable. Source: Cochran, Biometrika 37 (1950) 256.
    """
    if len(models) < 3 or not parts or not all(part.n for part in parts):
        return None
    chosen = list(models)
    values = np.sum([weight * part.values[chosen] for part, weight in zip(parts, weights, strict=True)], axis=0)
    within = 0.0
    for part, weight in zip(parts, weights, strict=True):
        rows = weight * part.rows[:, chosen]
        within += float(part.counts @ ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    if within <= _NO_SPREAD:
        return None
    statistic = (len(chosen) - 1) * float(((values - values.mean()) ** 2).sum()) / within
    degrees = len(chosen) - 1
    return Omnibus(statistic, degrees, chi_square_tail(statistic, degrees), sum(part.n for part in parts), test)
