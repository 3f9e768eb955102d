"""An average as tables show it: an estimate with its interval, or what bounds it, or a dash."""

from __future__ import annotations

from dataclasses import dataclass

from services.gateway.pages import formatting
from touchstone.v1 import metric_pb2


@dataclass(frozen=True, slots=True)
class Figure:
    """`text` and `interval` are × 100. Where `bounded`, the text is the range that missing answers leave open."""

    text: str = formatting.MISSING
    interval: str = ""
    bounded: bool = False


def figure(metric: metric_pb2.Metric | None, *, ranks: bool) -> Figure:
    """What is known of an average. A run that does not rank shows no estimate that missing answers could still move."""
    if metric is None:
        return Figure()
    if not (ranks and metric.HasField("mean")) and (open_to := formatting.bounds(metric)):
        return Figure(open_to, bounded=True)
    if not metric.HasField("mean") or not (ranks or metric.HasField("bound_low")):
        return Figure()
    return Figure(formatting.hundredths(metric.mean), formatting.interval(metric))
