"""What a comparison is asked for: metrics and terms within their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.errors import InvalidRequestError
from services.results.comparison.comparability import Comparability
from services.results.paired.difference import Terms
from services.results.suite_score import SCORE
from touchstone.v1 import comparison_pb2

_ALPHAS = (0.0001, 0.5)
_MOST_MARGIN = 2.0
_MOST_METRICS = 20


def terms_of(request: comparison_pb2.CompareRequest) -> Terms:
    """Raises InvalidRequestError for a margin or an alpha that cannot be."""
    alpha, margin = request.alpha or 0.05, request.margin or 0.01
    if not (math.isfinite(alpha) and _ALPHAS[0] <= alpha <= _ALPHAS[1]):
        raise InvalidRequestError(f"alpha is {alpha:g}; it may be {_ALPHAS[0]:g} to {_ALPHAS[1]:g}.", "alpha")
    if not (math.isfinite(margin) and 0 < margin <= _MOST_MARGIN):
        raise InvalidRequestError(f"margin is {margin:g}; it may be above 0, up to {_MOST_MARGIN:g}.", "margin")
    # Generators take seeds from 0; the two halves of the range stay apart.
    return Terms(alpha=alpha, margin=margin, seed=request.seed % 2**64)


def metrics_of(request: comparison_pb2.CompareRequest, compared: Comparability) -> list[str]:
    """Raises InvalidRequestError for a metric that no task of the suite has."""
    asked = list(dict.fromkeys(request.metrics)) or [SCORE]
    if len(asked) > _MOST_METRICS:
        raise InvalidRequestError(f"{len(asked)} metrics are named; at most {_MOST_METRICS}.", "metrics")
    known = _known_metrics(compared)
    for metric in asked:
        if metric not in known:
            raise InvalidRequestError(
                f"No task that these runs have in common has the metric {metric[:80]!r}. Metrics: {', '.join(known)}.",
                "metrics",
            )
    return asked


def _known_metrics(compared: Comparability) -> Sequence[str]:
    plans = [run.plans[task] for run in compared.runs for task in compared.tasks]
    return list(dict.fromkeys([SCORE, *(spec.metric for plan in plans for spec in plan.metrics)]))
