"""Figures and lists in sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from services.results import statistics
from services.results.suite_score import SCORE

_OWN_RANGE = {statistics.MATTHEWS, *statistics.CORRELATIONS}


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
