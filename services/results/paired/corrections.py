"""Many hypotheses at once: whether k models differ at all, which hypotheses belong together, their adjusted p, and what
the items can show. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from services.results.paired import binary
from services.results.paired.differences import Groups, chosen_tasks, counted, right_or_wrong
from services.results.paired.moments import smallest_shown
from services.results.paired.pairs import contributions
from services.results.paired.pairs.contributions import Contributions
from services.results.paired.pairs.difference import Difference, Omnibus
from services.results.paired.pairs.rows import Cost, TaskRows, is_binary
from services.results.statistics.distributions import chi_square_tail
from services.results.statistics.metric_values import Floats, Ints

EXPLORATORY_FROM = 21
"""From this number on, tasks are explored, not tested one by one."""
COCHRAN = "Cochran's Q"
SCORES = "Cochran's Q of scores"
_NO_SPREAD = 1e-18


class Family(StrEnum):
    """The families of hypotheses that are corrected together. Baselines are in none."""

    PRIMARY = "primary"
    """Differences of the suite's score, of all pairs of models."""
    TASKS = "tasks"
    """Their tasks."""
    EXPLORATORY = "exploratory"
    """Many tasks, and metrics that are not scored: the chance of a single error is not controlled."""


class Correction(StrEnum):
    NONE = ""
    HOLM = "holm"
    BENJAMINI_HOCHBERG = "benjamini-hochberg"


def task_family(tasks: int) -> tuple[Family, Correction]:
    """The family of a suite with this many tasks."""
    if tasks < 2:
        return Family.TASKS, Correction.NONE
    if tasks < EXPLORATORY_FROM:
        return Family.TASKS, Correction.HOLM
    return Family.EXPLORATORY, Correction.BENJAMINI_HOCHBERG


def adjust(p: Sequence[float | None], correction: Correction) -> list[float | None]:
    """Adjusted p of one family, in its order. Members without p stay outside."""
    known = [(place, each) for place, each in enumerate(p) if each is not None]
    values = [each for _, each in known]
    if correction is Correction.HOLM:
        values = holm(values)
    elif correction is Correction.BENJAMINI_HOCHBERG:
        values = benjamini_hochberg(values)
    adjusted: list[float | None] = [None] * len(p)
    for (place, _), each in zip(known, values, strict=True):
        adjusted[place] = each
    return adjusted


def adjust_pairs(p: Sequence[float | None], omnibus: float | None) -> list[float | None]:
    """Adjusted p of the suite's differences of several pairs: Holm's, and never below that of all models together.

    Otherwise two models could differ although it is not shown that any do.
    """
    floor = omnibus or 0.0
    return [None if each is None else max(each, floor) for each in adjust(p, Correction.HOLM)]


def holm(p: Sequence[float] | Floats) -> list[float]:
    """Bounds the chance of any false rejection. Source: Holm, Scandinavian Journal of Statistics 6 (1979) 65."""
    order = np.argsort(p, kind="stable")
    steps = np.arange(len(order), 0, -1)
    rising = np.minimum(1.0, np.maximum.accumulate(steps * np.asarray(p, dtype=float)[order]))
    return _in_order(rising, order)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Bounds the expected share of false rejections.

    Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57 (1995) 289.
    """
    order = np.argsort(p, kind="stable")[::-1]
    count = len(order)
    steps = count / np.arange(count, 0, -1)
    falling = np.minimum(1.0, np.minimum.accumulate(steps * np.asarray(p, dtype=float)[order]))
    return _in_order(falling, order)


def _in_order(values: Floats, order: Ints) -> list[float]:
    found = np.empty(len(order))
    found[order] = values
    return [float(each) for each in found]


def within(differences: Sequence[Difference], alpha: float) -> list[Difference]:
    """Members of a family that is corrected to `alpha`, each with the smallest true difference that it shows with 80 %
    power or more.

    Computed at alpha by the number of members, the first step of Holm's and the last of Benjamini and Hochberg's
    corrections: what is found at that step is found whatever the others show. The step of a member depends on the
    others, and would differ with other answers of the same models.
    """
    level = alpha / max(1, len(differences))
    found = list(differences)
    for places, smallest in (_of_counts(found, level), _of_reach(found, level)):
        for place, value in zip(places, smallest.tolist(), strict=True):
            found[place] = replace(found[place], smallest=value)
    return found


def _of_counts(differences: Sequence[Difference], level: float) -> tuple[list[int], Floats]:
    chosen = [(i, d) for i, d in enumerate(differences) if d.smallest is not None and d.reach is None]
    counts = np.array([(d.n, d.only_a, d.only_b) for _, d in chosen], dtype=float).reshape(-1, 3)
    n, only_a, only_b = counts.T
    return [i for i, _ in chosen], binary.smallest_difference(n, only_a, only_b, level)


def _of_reach(differences: Sequence[Difference], level: float) -> tuple[list[int], Floats]:
    chosen = [(i, d.reach) for i, d in enumerate(differences) if d.smallest is not None and d.reach is not None]
    reaches = np.array([(r.width, r.degrees, r.limit) for _, r in chosen], dtype=float).reshape(-1, 3)
    width, degrees, limit = reaches.T
    smallest: Floats = np.minimum(smallest_shown(width, degrees, level), limit)
    return [i for i, _ in chosen], smallest


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
