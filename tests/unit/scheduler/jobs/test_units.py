"""Units of a plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.jobs.units import Layout
from touchstone.v1 import job_pb2


def layout(*tasks: tuple[int, int]) -> Layout:
    return Layout([job_pb2.TaskPlan(task=f"t{i}", items=n, unit_size=size) for i, (n, size) in enumerate(tasks)])


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 64)), max_size=6))
def test_units_cover_every_item_once(tasks: list[tuple[int, int]]) -> None:
    made = layout(*tasks)
    seen = [(made.slice(u).task, p) for u in range(made.units) for p in range(made.slice(u).start, made.slice(u).stop)]
    assert seen == [(task, p) for task, (items, _) in enumerate(tasks) for p in range(items)]
    assert made.items == len(seen)


def test_a_unit_outside_the_plan_is_an_error() -> None:
    with pytest.raises(IndexError):
        layout((10, 5)).slice(2)


def test_a_retry_runs_only_what_is_missing() -> None:
    made = layout((10, 4), (5, 5))
    assert made.missing([set(range(10)), set(range(5))]) == {}
    assert made.missing([{0, 1, 2, 3, 5}, set()]) == {1: (4, 6, 7), 2: (), 3: ()}
