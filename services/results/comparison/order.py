"""In which order compared runs stand, and which of a pair comes first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from services.results.comparison.runs import Run
from services.results.paired.difference import Pair
from touchstone.v1 import metric_pb2

Averages = Mapping[str, metric_pb2.Metric]


def order(runs: Sequence[Run], averages: Sequence[Averages], metric: str) -> list[int]:
    """Places of the runs, best first by the metric: models, then baselines, then runs that do not rank."""

    def key(place: int) -> tuple[bool, bool, float, str, str]:
        run = runs[place]
        value = value_of(averages[place], metric)
        return bool(run.not_ranked_reason), run.job.baseline, -value, run.configuration, run.job_id

    return sorted(range(len(runs)), key=key)


def pairs(ordered: Sequence[int], averages: Sequence[Averages], metric: str) -> list[Pair]:
    """Every pair, the better run first; of equals the one that stands first."""
    return [
        (a, b) if value_of(averages[a], metric) >= value_of(averages[b], metric) else (b, a)
        for a, b in combinations(ordered, 2)
    ]


def value_of(averages: Averages, metric: str) -> float:
    """Lowest where there is none."""
    found = averages.get(metric)
    return found.mean if found is not None and found.HasField("mean") else float("-inf")
