"""What runs are called in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from services.results.comparison.runs import Run

_WAYS: tuple[Callable[[Run], str], ...] = (
    lambda run: run.name or run.job.spec.model,
    lambda run: run.name or f"{run.job.spec.model}@{run.job.spec.endpoint}",
    lambda run: f"{run.job.spec.model} (configuration {run.configuration})",
    lambda run: f"{run.job.spec.model} (job {run.job_id})",
)


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
