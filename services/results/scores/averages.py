"""From tasks to a suite: its score, averages by category, and how they come about in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from services.results.scores.aggregation import Measured, percentile_interval
from services.results.statistics.metric_values import Estimate, Floats


@dataclass(frozen=True, slots=True)
class _Score:
    value: float
    n: int
    bounds: tuple[float, float] | None
    answered: float | None
    draws: Floats


def average(groups: Sequence[Sequence[Measured]], metric: str = "", *, by_items: bool = False) -> Estimate | None:
    """Unweighted mean over groups of the mean over a group's tasks of the mean of a task's metrics; `by_items`: the
    mean over all tasks, each weighted by its items.

    A group is one task, or several that count once (MNLI matched and mismatched). Metrics beside are left out, unless
    `metric` names one: it restricts the average to one metric and to the tasks that have it. An undefined value counts
    as 0. None when there is no task, or one without items. An average over one metric of one task is that metric, with
    its own interval.
    """
    chosen = [[m for m in group if names_of(m, metric)] for group in groups]
    chosen = [group for group in chosen if group]
    estimates = [m.estimates[name] for group in chosen for m in group for name in names_of(m, metric)]
    if not estimates or any(e.n == 0 for e in estimates):
        return None
    if len(estimates) == 1 and estimates[0].value is not None:
        return estimates[0]
    tasks = [[_task_score(m, metric) for m in group] for group in chosen]
    if by_items:
        parts = [task for group in tasks for task in group]
        score = _mean(parts, [task.n for task in parts])
    else:
        score = _mean([_mean(group) for group in tasks])
    # Each task's draws lean a little towards the middle of their range, by the prior. Over many tasks that does not
    # average out while the width shrinks: only their spread is taken, around the average itself.
    low, high = min(0.0, score.draws.min()), max(1.0, score.draws.max())
    draws = np.clip(score.draws - score.draws.mean() + score.value, low, high)
    reasons = sorted({e.undefined_reason for e in estimates if e.undefined_reason})
    whole = percentile_interval(score.value, score.n, draws, "stratified")
    return replace(whole, bounds=score.bounds, answered=score.answered, undefined_reason="; ".join(reasons))


def names_of(measured: Measured, metric: str) -> list[str]:
    """The metrics of a task that an average takes."""
    if metric:
        return [metric] if metric in measured.estimates else []
    return [name for name in measured.estimates if name not in measured.beside]


def _task_score(measured: Measured, metric: str) -> _Score:
    found = []
    for name in names_of(measured, metric):
        estimate = measured.estimates[name]
        value = 0.0 if estimate.value is None else estimate.value
        found.append(_Score(value, estimate.n, estimate.bounds, estimate.answered, measured.draws[name]))
    # Of several metrics the first counts items; others may count groups of them.
    return replace(_mean(found), n=found[0].n)


def _mean(parts: Sequence[_Score], weights: Sequence[float] | None = None) -> _Score:
    if len(parts) == 1:
        return parts[0]
    bounds = [part.bounds for part in parts if part.bounds is not None]
    answered = [part.answered for part in parts if part.answered is not None]
    return _Score(
        value=fmean([part.value for part in parts], weights),
        n=sum(part.n for part in parts),
        bounds=(fmean([low for low, _ in bounds], weights), fmean([high for _, high in bounds], weights))
        if len(bounds) == len(parts)
        else None,
        answered=fmean(answered, weights) if len(answered) == len(parts) else None,
        draws=np.average([part.draws for part in parts], axis=0, weights=weights),
    )
