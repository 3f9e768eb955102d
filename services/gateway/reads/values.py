"""Stored values that may be missing, cut or wrong: JSON texts, costs, tokens, lost calls, bounds."""

from __future__ import annotations

import json
from typing import Any, Literal, Protocol

from services import numbers
from touchstone.v1 import job_pb2, metric_pb2

_ROUNDING = 1e-9


def parsed(written: str) -> Any:
    """The parsed stored JSON, null for none; a text that was cut is no longer JSON and is returned unchanged."""
    if not written:
        return None
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


class Priced(Protocol):
    """A message that may tell a cost."""

    @property
    def cost_usd(self) -> float: ...

    def HasField(self, field_name: Literal["cost_usd"], /) -> bool: ...  # noqa: N802 - protobuf's name


def members(written: str) -> dict[str, Any] | None:
    """A stored JSON object; None for none, and for one that was cut."""
    held = parsed(written)
    return held if isinstance(held, dict) else None


def cost(message: Priced) -> float | None:
    """US dollars. None also for an impossible cost, which earlier versions stored as providers gave it."""
    return numbers.job_usd(message.cost_usd) if message.HasField("cost_usd") else None


def tokens(counted: int, untold: int) -> int | None:
    """None if there are answers but none has its tokens."""
    return None if untold and not counted else counted


def lost_calls(job: job_pb2.Job) -> int:
    """The most calls that may be charged without a known price; 0 for a job whose calls are free."""
    priced = job.progress.HasField("cost_usd") or job.spec.budget_usd
    return job.progress.lost_calls if priced else 0


def is_bounded(metric: metric_pb2.Metric) -> bool:
    """Whether its bounds differ from its mean: unanswered items could still change it."""
    return metric.HasField("bound_low") and metric.bound_high - metric.bound_low > _ROUNDING
