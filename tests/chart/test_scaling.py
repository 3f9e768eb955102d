"""What KEDA looks at grows the number of evaluators while a job has more to do, and not when it has not."""

from __future__ import annotations

import math

import pytest

from services.scheduler.jobs import queue
from tests.chart.rendered import of_kind, render, values_files


def desired(lag: int) -> int:
    """Evaluators for a lag, as Kubernetes computes them from KEDA's target."""
    (scaled, *_) = of_kind(render(values_files()["keda"]), "ScaledObject")
    least, most = scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]
    target = int(scaled["spec"]["triggers"][0]["metadata"]["lagThreshold"])
    return int(min(max(math.ceil(lag / target), least), most))


def released(evaluators: int, slots: int, units: int, items: int) -> int:
    """Units that the scheduler offers of a job with `units` units of `items` items."""
    job = queue.Active(
        job_id="j", owner="o", priority=0, since=0.0, in_flight_units=0, in_flight_items=0,
        next_units=[(unit, items) for unit in range(units)], warm=False,
    )  # fmt: skip
    return len(queue.choose([job], capacity=slots * evaluators, evaluators=evaluators, exclusive=False))


@pytest.mark.parametrize("slots", [1, 8, 64])
def test_evaluators_are_added_until_nothing_waits(slots: int) -> None:
    counts = [1]
    while counts[-1] < 8:
        counts.append(desired(released(counts[-1], slots, units=1000, items=32)))
        assert counts[-1] > counts[-2]


def test_the_rest_of_a_job_keeps_only_the_evaluators_that_it_needs() -> None:
    assert desired(released(8, 8, units=3, items=32)) == 3


def test_without_work_one_evaluator_stays() -> None:
    assert desired(0) == 1
