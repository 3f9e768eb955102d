"""Estimates as messages."""

from __future__ import annotations

from services.results.statistics import Estimate
from touchstone.v1 import metric_pb2

_ROUNDING = 1e-9


def metric_message(name: str, estimate: Estimate, *, beside: bool = False) -> metric_pb2.Metric:
    metric = metric_pb2.Metric(
        metric=name,
        mean=estimate.value,
        stderr=estimate.stderr,
        ci95_low=estimate.low,
        ci95_high=estimate.high,
        n=estimate.n,
        undefined_reason=estimate.undefined_reason,
        method=estimate.method,
        beside=beside,
    )
    if estimate.bounds is not None and (estimate.value is not None or estimate.bounds[0] < estimate.bounds[1]):
        metric.bound_low, metric.bound_high = estimate.bounds
    # Where nothing is missing it would say the same again.
    if estimate.answered is not None and metric.bound_high - metric.bound_low > _ROUNDING:
        metric.answered_mean = estimate.answered
    return metric
