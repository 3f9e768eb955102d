"""Which metrics a leaderboard can be asked for."""

from __future__ import annotations

import pytest

from services.gateway.reads.questions import SUITE_SCORE, has_metric
from touchstone.v1 import results_service_pb2


@pytest.mark.parametrize(
    ("named", "metric", "known"),
    [
        ([], "f1", True),
        (["accuracy"], "accuracy", True),
        (["accuracy"], SUITE_SCORE, True),
        (["accuracy"], "f1", False),
    ],
)
def test_a_board_that_names_no_metric_may_have_any(named: list[str], metric: str, known: bool) -> None:
    assert has_metric(results_service_pb2.GetLeaderboardResponse(metrics=named), metric) is known
