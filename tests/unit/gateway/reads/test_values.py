"""Stored values that are missing, cut or out of the ordinary."""

from __future__ import annotations

import pytest

from services.gateway.reads import values
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2


def test_json_that_was_cut_stands_as_text() -> None:
    assert values.parsed("") is None
    assert values.parsed('{"a": 1}') == {"a": 1}
    assert values.parsed('{"a": "long…') == '{"a": "long…'


@pytest.mark.parametrize("written", ["", "[1]", '{"a": "long…'])
def test_only_a_whole_object_has_members(written: str) -> None:
    assert values.members(written) is None
    assert values.members('{"a": 1}') == {"a": 1}


def test_a_cost_that_nobody_told_is_none_and_not_zero() -> None:
    assert values.cost(item_result_pb2.ItemResult()) is None
    assert values.cost(item_result_pb2.ItemResult(cost_usd=0.0)) == 0.0


@pytest.mark.parametrize(("counted", "untold", "shown"), [(0, 0, 0), (0, 3, None), (5, 3, 5)])
def test_tokens_are_unknown_where_no_answer_tells_them(counted: int, untold: int, shown: int | None) -> None:
    assert values.tokens(counted, untold) == shown


def test_lost_calls_count_where_calls_have_a_price_or_a_budget() -> None:
    lost = job_pb2.Progress(lost_calls=2)

    assert values.lost_calls(job_pb2.Job(progress=lost)) == 0
    assert values.lost_calls(job_pb2.Job(progress=lost, spec=job_pb2.JobSpec(budget_usd=1))) == 2
    assert values.lost_calls(job_pb2.Job(progress=job_pb2.Progress(lost_calls=2, cost_usd=0.5))) == 2


def test_bounds_of_rounding_alone_are_none() -> None:
    assert not values.is_bounded(metric_pb2.Metric(mean=0.5))
    assert not values.is_bounded(metric_pb2.Metric(bound_low=0.5, bound_high=0.5 + 1e-12))
    assert values.is_bounded(metric_pb2.Metric(bound_low=0.5, bound_high=0.6))
