"""How many items a unit has."""

from __future__ import annotations

import pytest

from services.evaluator.planning.planner import unit_size
from touchstone.v1 import endpoint_pb2


@pytest.mark.parametrize(
    ("concurrency", "per_minute", "size"),
    [
        (8, 0, 32),
        (48, 0, 48),
        (64, 0, 64),
        (1000, 0, 64),
        (8, 600, 4),
        (64, 60_000, 64),
        (8, 60, 1),
        (8, 1, 1),
    ],
)
def test_a_unit_grows_with_the_calls_at_once_and_is_small_where_calls_are_limited(
    concurrency: int, per_minute: int, size: int
) -> None:
    endpoint = endpoint_pb2.Endpoint(concurrency=concurrency, requests_per_minute=per_minute)
    assert unit_size(32, endpoint) == size
