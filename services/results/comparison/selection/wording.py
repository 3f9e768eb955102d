"""Runs, figures and lists as sentences name them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from services.results.comparison.selection.runs import Run
from services.results.scores.suite_score import SCORE
from services.results.statistics import metric_values

_WAYS: tuple[Callable[[Run], str], ...] = (
    lambda run: run.name or run.job.spec.model,
    lambda run: run.name or f"{run.job.spec.model}@{run.job.spec.endpoint}",
    lambda run: f"{run.job.spec.model} (configuration {run.configuration})",
    lambda run: f"{run.job.spec.model} (job {run.job_id})",
)

_OWN_RANGE = {metric_values.MATTHEWS, *metric_values.CORRELATIONS}


def labels(runs: Sequence[Run]) -> list[str]:
    """Each run by the shortest that no other run has: name or model, model and endpoint, configuration, job."""
    found = [""] * len(runs)
    for way in _WAYS:
        names = [way(run) for run in runs]
        times = Counter(names)
        for place, name in enumerate(names):
            if not found[place] and times[name] == 1:
                found[place] = name
    return found


def in_points(metric: str) -> bool:
    """Whether a metric is a share, told in percentage points; correlations are told in their own range."""
    return metric not in _OWN_RANGE


def amount(value: float, metric: str) -> str:
    """The size of a difference."""
    return f"{abs(value) * 100:.1f} points" if in_points(metric) else f"{abs(value):.3f}"


def metric_title(metric: str) -> str:
    return "the suite's score" if metric == SCORE else f"mean {metric.replace('_', ' ')}"


def listed(names: Sequence[str], most: int = 8) -> str:
    shown = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
