"""Headers of messages."""

from __future__ import annotations

import pytest

from services.bus.headers import KIND_ITEMS, JobHeaders, ResultHeaders
from touchstone.v1 import job_pb2


@pytest.mark.parametrize("cost", [None, 0.0, 0.1 + 0.2])
def test_what_a_message_tells_comes_back_whole(cost: float | None) -> None:
    told = ResultHeaders(KIND_ITEMS, 2, 3, "rte", 64, 1, 900, True, cost, 2, 5, "e1", 7, True)
    assert ResultHeaders.decode(told.encode()) == told


def test_a_message_without_headers_tells_nothing() -> None:
    assert ResultHeaders.decode(None) == ResultHeaders("", 0)


@pytest.mark.parametrize("count", ["-1", str(2**31), "many"])
def test_a_count_that_cannot_be_is_an_error(count: str) -> None:
    with pytest.raises(ValueError, match=r"Touchstone-Items|invalid literal"):
        ResultHeaders.decode({"Touchstone-Items": count})


@pytest.mark.parametrize("cost", ["nan", "-1", "1e19", "dear"])
def test_a_cost_that_cannot_be_makes_every_item_one_without_a_price(cost: str) -> None:
    read = ResultHeaders.decode({"Touchstone-Items": "64", "Touchstone-Unpriced": "1", "Touchstone-Cost": cost})
    assert (read.cost, read.unpriced) == (None, 64)


def test_a_jobs_headers_come_back_and_damaged_ones_are_of_no_state() -> None:
    told = JobHeaders(job_pb2.Job.STATE_RUNNING, 2, "ds_1")
    assert JobHeaders.decode(told.encode()) == told
    damaged = told.encode() | {"Touchstone-Attempt": "x"}
    assert JobHeaders.decode(damaged) == JobHeaders(job_pb2.Job.STATE_UNSPECIFIED, 0, "ds_1")
