"""What the calls of a job have cost, and may have cost. Pure. Amounts are US dollars."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from services import numbers
from touchstone.v1 import job_pb2, job_record_pb2


class Bill:
    """Of all attempts, without the units in flight. `costs` are prices that were told, added up at once so that no
    digits are lost; `lost_calls` is how many calls told none, at most, and `lost` what those may have cost."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.lost = 0.0
        self.lost_calls = 0

    def pay(self, costs: Iterable[float]) -> None:
        """Adds prices that were told."""
        self.costs += costs

    def lose(self, calls: int, most: float) -> None:
        """Adds calls whose price nobody will tell; each may have cost so much."""
        self.lost_calls += calls
        self.lost += most * calls

    def carry(self, before: job_pb2.Progress) -> None:
        """Takes over what earlier attempts have cost."""
        self.costs = _known(before.cost_usd if before.HasField("cost_usd") else None)
        self.lost, self.lost_calls = fsum(_known(before.reserved_usd)), before.lost_calls

    def save(self, record: job_record_pb2.JobRecord) -> None:
        record.ClearField("cost_usd")
        if self.costs:
            record.cost_usd = fsum(self.costs)
        record.lost_usd, record.lost_calls = self.lost, self.lost_calls

    def load(self, record: job_record_pb2.JobRecord) -> None:
        self.costs = _known(record.cost_usd if record.HasField("cost_usd") else None)
        self.lost, self.lost_calls = fsum(_known(record.lost_usd)), record.lost_calls


def _known(usd: float | None) -> list[float]:
    """The sum; none where it cannot be, as earlier versions stored them."""
    known = numbers.job_usd(usd)
    return [] if known is None else [known]
