"""Metrics that are no part of a score."""

from __future__ import annotations

import pytest

from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import job
from tests.unit.results.scores.planned import measured, planned
from touchstone.v1.suite_pb2 import MetricSpec


def test_metrics_and_tasks_beside_are_no_part_of_the_score(connection: Connection) -> None:
    first = planned("hellaswag", 10)
    first.metrics.append(MetricSpec(metric="norm", rule=MetricSpec.RULE_MEAN, statistic="correct", beside=True))
    diagnostic = planned("axg", 10, "accuracy", beside=True)
    diagnostic.metrics.append(MetricSpec(metric="parity", rule=MetricSpec.RULE_MEAN, statistic="correct", beside=False))
    other = planned("copa", 10)
    result = measured(connection, {"hellaswag": 8, "copa": 6, "axg": 1}, first, other, diagnostic)
    assert result.suite_score.mean == pytest.approx(0.7)
    assert [m.beside for m in result.tasks[0].metrics] == [False, True]
    assert [task.beside for task in result.tasks] == [False, False, True]
    averages = job_result.compute(connection, job("j", first, other, diagnostic), seal=True).averages
    own = [(m, tasks) for m, tasks in averages if " over " not in m.metric]
    assert {m.metric: (round(m.mean, 9), tasks) for m, tasks in own} == {
        "score": (0.7, 2),
        "accuracy": (0.7, 2),
        "norm": (0.8, 1),
        # Only a task beside has it: it stands for itself.
        "parity": (0.1, 1),
    }
