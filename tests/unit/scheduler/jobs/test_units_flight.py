"""Units under way."""

from __future__ import annotations

import pytest

from services.bus import ResultHeaders
from services.scheduler.jobs.units import Flight


@pytest.mark.parametrize(("paid_once", "cost", "lost"), [(True, 5.0, 0.0), (False, 7.0, 6.0)])
def test_reading_a_batch_again_costs_nothing(paid_once: bool, cost: float, lost: float) -> None:
    flight = Flight(10, 1.0, 0, paid_once)
    flight.count(ResultHeaders("items", 1, delivery=1, items=4, cost=2e6))
    flight.count(ResultHeaders("items", 1, delivery=2, items=10, cost=5e6))
    assert (flight.cost, flight.items) == (cost, 10)
    assert flight.lost == pytest.approx(lost)
