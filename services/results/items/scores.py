"""What single answers count in their task's first metric, where that is a mean over items. In SQL, so that lists, files
and conditions have the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from services.results.scores import metric_kinds
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_INFRASTRUCTURE_ERROR
from touchstone.v1.suite_pb2 import MetricSpec

IS_SCORED = "(coalesce(correct, value, target) IS NOT NULL OR other_statistics IS NOT NULL)"
"""SQL: whether an answer has statistics. Rows of a dataset without a reference have none and count in no metric."""

_COLUMNS = ("correct", "value", "target")
_Kind = tuple[bool, str] | None
"""Whether a task's first metric is accuracy, and the statistic it reads; None where single answers have no score."""


@dataclass(frozen=True, slots=True)
class Score:
    """An expression over a row of `items`, NULL without a score, with its parameters."""

    sql: str
    parameters: dict[str, Any]


def score_of(plans: Iterable[job_pb2.TaskPlan], prefix: str = "score") -> Score:
    """Of a job with these tasks. `prefix` begins the parameters' names, to keep several jobs apart."""
    tasks: dict[_Kind, list[str]] = defaultdict(list)
    for plan in plans:
        tasks[_kind(plan.metrics)].append(plan.task)
    cases: list[tuple[str, list[str]]] = []
    parameters: dict[str, Any] = {}
    for kind, named in tasks.items():
        if kind is not None:
            number, used = _number(*kind, f"{prefix}_path_{len(cases)}")
            cases.append((number, named))
            parameters |= used
    if not cases:
        return Score("NULL::DOUBLE", {})
    found = cases[0][0]
    # One kind alone needs no CASE, which would take a fifth of a page's time.
    if len(tasks) > 1:
        whens = [
            f"WHEN list_contains(${prefix}_tasks_{place}::VARCHAR[], task) THEN {number}"
            for place, (number, _) in enumerate(cases)
        ]
        found = f"CASE {' '.join(whens)} END"
        parameters |= {f"{prefix}_tasks_{place}": named for place, (_, named) in enumerate(cases)}
    return Score(f"CASE WHEN outcome <> {OUTCOME_INFRASTRUCTURE_ERROR} AND {IS_SCORED} THEN {found} END", parameters)


def _kind(metrics: Sequence[MetricSpec]) -> _Kind:
    if not metrics:
        return None
    is_accuracy = metric_kinds.is_accuracy(metrics[0])
    return (is_accuracy, metrics[0].statistic) if is_accuracy or metrics[0].rule == MetricSpec.RULE_MEAN else None


def _number(is_accuracy: bool, statistic: str, path: str) -> tuple[str, dict[str, str]]:
    """By the rules of queries/scores/answers.sql."""
    if is_accuracy:
        return f"(outcome = {OUTCOME_ANSWERED} AND coalesce(correct, 0) >= 0.5)::DOUBLE", {}
    if statistic in _COLUMNS:
        return f"CASE WHEN isfinite({statistic}) THEN {statistic} ELSE 0 END", {}
    number = f"(other_statistics ->> ${path}::VARCHAR)::DOUBLE"
    return f"CASE WHEN isfinite({number}) THEN {number} ELSE 0 END", {path: f'$."{statistic}"'}
