"""What is done of a running job, counted from RESULTS headers. Pure: the caller brings the clock.

A unit that is delivered again starts again from nothing, so its earlier count is dropped; a done unit counts its
planned items. Counting the same message twice is prevented by the stream position.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.scheduler.plan import Layout
from touchstone.v1 import job_pb2, job_record_pb2

if TYPE_CHECKING:
    from services.bus import ResultHeaders

WINDOW_S = 30.0
SAMPLE_S = 1.0
_HISTORY = 60


@dataclass(slots=True)
class _Flight:
    """A unit that has begun to report: counts of its newest delivery."""

    first: int
    """Position before its first message."""
    delivery: int = 0
    items: int = 0
    errors: int = 0
    tokens: int = 0


class Ledger:
    """Done and released units of one attempt, with rates."""

    def __init__(self, tasks: list[job_pb2.TaskPlan]) -> None:
        self.layout = Layout(tasks)
        self._names = [task.task for task in tasks]
        self._done = bytearray(-(-self.layout.units // 8))
        self._done_count = 0
        self._done_items = [0] * len(tasks)
        self._failed_items = [0] * len(tasks)
        self._tokens = 0
        self._partial: dict[int, tuple[int, ...]] = {}
        self._flights: dict[int, _Flight] = {}
        self.released: set[int] = set()
        self._begun: set[int] = set()
        self.kept_items = 0
        """Items that an earlier attempt has done."""
        self._next = 0
        self.sequence = 0
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=4 * _HISTORY)

    # -- storage -----------------------------------------------------------------------------------------------

    def save(self, record: job_record_pb2.JobRecord) -> None:
        """Writes what a restart needs. Units in flight are left out: their messages are replayed from the stream."""
        record.done_units = bytes(self._done)
        record.results_sequence = self._safe_sequence()
        del record.partial_units[:]
        for unit, positions in self._partial.items():
            record.partial_units.add(unit=unit, positions=positions)
        del record.failed_items[:]
        record.failed_items.extend(self._failed_items)
        record.output_tokens = self._tokens

    def _safe_sequence(self) -> int:
        # Replaying from here must bring back every message of the unfinished units.
        return min((flight.first for flight in self._flights.values()), default=self.sequence)

    @classmethod
    def load(cls, record: job_record_pb2.JobRecord) -> Ledger:
        ledger = cls(list(record.job.plan))
        for unit in range(ledger.layout.units):
            if unit // 8 < len(record.done_units) and record.done_units[unit // 8] >> (unit % 8) & 1:
                ledger._set_done(unit)
        ledger._failed_items = [*record.failed_items, *[0] * len(ledger._names)][: len(ledger._names)]
        ledger._tokens = record.output_tokens
        ledger._partial = {p.unit: tuple(p.positions) for p in record.partial_units}
        ledger.sequence = record.results_sequence
        return ledger

    def keep(self, missing: Mapping[int, tuple[int, ...]]) -> None:
        """Marks every unit done that is not in `missing`: what a retry has stored already."""
        for unit in range(self.layout.units):
            if unit not in missing:
                self._set_done(unit)
        self._partial = {unit: positions for unit, positions in missing.items() if positions}
        self.kept_items = self.layout.items - sum(self.unit_items(unit) for unit in missing)

    # -- events ------------------------------------------------------------------------------------------------

    def record(self, unit: int, headers: ResultHeaders, sequence: int) -> bool:
        """Counts one message; True when it finished its unit. Messages seen before and unknown units change nothing."""
        if sequence <= self.sequence or not 0 <= unit < self.layout.units:
            return False
        self.sequence = sequence
        if self.is_done(unit):
            return False
        flight = self._flights.setdefault(unit, _Flight(first=sequence - 1))
        self.released.add(unit)
        if headers.delivery > flight.delivery:
            flight.delivery, flight.items, flight.errors, flight.tokens = headers.delivery, 0, 0, 0
        if headers.delivery == flight.delivery:
            flight.items += headers.items
            flight.errors += headers.errors
            flight.tokens += headers.output_tokens
        # A slower earlier delivery may finish first: all items of the unit are stored then, too.
        if not headers.done:
            return False
        self._failed_items[self.layout.slice(unit).task] += flight.errors
        self._tokens += flight.tokens
        self._set_done(unit)
        return True

    def _set_done(self, unit: int) -> None:
        self._done[unit // 8] |= 1 << (unit % 8)
        self._done_count += 1
        place = self.layout.slice(unit)
        self._done_items[place.task] += place.size
        self._flights.pop(unit, None)
        self.released.discard(unit)

    def task_done(self, unit: int) -> str:
        """The task whose last unit this was, with its figures, in words; empty while others of it are missing."""
        task = self.layout.slice(unit).task
        items, failed = self._done_items[task], self._failed_items[task]
        if items < self.layout.task_items(task):
            return ""
        return f"{self._names[task]}: all {items:,} items done" + (f", {failed:,} without an answer" if failed else "")

    def is_done(self, unit: int) -> bool:
        return bool(self._done[unit // 8] >> (unit % 8) & 1)

    # -- release -----------------------------------------------------------------------------------------------

    def unreleased(self, units: int, items: int = 0) -> list[tuple[int, int]]:
        """(unit, items) pairs that are neither done nor released, in plan order: as many as make up so many units and
        so many items, where there are."""
        while self._next < self.layout.units and (self.is_done(self._next) or self._next in self.released):
            self._next += 1
        found: list[tuple[int, int]] = []
        missing = items
        for unit in range(self._next, self.layout.units):
            if len(found) >= units and missing <= 0:
                break
            if not self.is_done(unit) and unit not in self.released:
                found.append((unit, self.unit_items(unit)))
                missing -= found[-1][1]
        return found

    def unit_items(self, unit: int) -> int:
        return len(self._partial[unit]) if unit in self._partial else self.layout.slice(unit).size

    def positions(self, unit: int) -> tuple[int, ...]:
        """Positions that the unit is limited to; empty means all of its slice."""
        return self._partial.get(unit, ())

    def begun(self, unit: int) -> bool:
        """Whether an evaluator may have stored some of its answers before it was taken back."""
        return unit in self._begun

    def take_back(self, unit: int) -> None:
        """The unit is not with an evaluator after all; it will be released again."""
        self._begun.add(unit)
        self.released.discard(unit)
        self._flights.pop(unit, None)
        self._next = min(self._next, unit)

    @property
    def in_flight_items(self) -> int:
        flights = self._flights
        return sum(self.unit_items(u) - (flights[u].items if u in flights else 0) for u in self.released)

    # -- figures -----------------------------------------------------------------------------------------------

    @property
    def all_done(self) -> bool:
        return self._done_count == self.layout.units

    @property
    def items_done(self) -> int:
        return sum(self._done_items) + sum(min(f.items, self.unit_items(u)) for u, f in self._flights.items())

    def pace(self, now: float) -> float:
        """Items per second lately; 0 in the first moments."""
        for at, done, _ in reversed(self._samples):
            if now - at >= SAMPLE_S / 2:
                return max(0.0, (self.items_done - done) / (now - at))
        return 0.0

    @property
    def items_failed(self) -> int:
        return sum(self._failed_items) + sum(f.errors for f in self._flights.values())

    @property
    def output_tokens(self) -> int:
        return self._tokens + sum(f.tokens for f in self._flights.values())

    def sample(self, now: float) -> None:
        """Notes the present figures for the rates; call it about once a second."""
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_S * 0.9:
            self._samples.append((now, self.items_done, self.output_tokens))

    def progress(self, now: float, progress: job_pb2.Progress) -> None:
        """Fills in counts, rates and the time left."""
        progress.items_total = self.layout.items
        progress.items_done = self.items_done
        progress.items_failed = self.items_failed
        progress.units_total = self.layout.units
        progress.units_done = self._done_count
        progress.units_released = len(self.released)
        progress.output_tokens = self.output_tokens
        running = {self.layout.slice(unit).task for unit in self.released}
        flying = [0] * len(self._names)
        failing = list(self._failed_items)
        for unit, flight in self._flights.items():
            task = self.layout.slice(unit).task
            flying[task] += min(flight.items, self.unit_items(unit))
            failing[task] += flight.errors
        del progress.tasks[:]
        for task, name in enumerate(self._names):
            progress.tasks.add(
                task=name,
                items_total=self.layout.task_items(task),
                items_done=self._done_items[task] + flying[task],
                items_failed=failing[task],
                running=task in running,
            )
        self._rates(now, progress)

    def _rates(self, now: float, progress: job_pb2.Progress) -> None:
        rates = self._sample_rates()
        del progress.rate_history[:]
        progress.rate_history.extend(rate for _, rate in rates[-_HISTORY:])
        for name in ("eta_s", "eta_low_s", "eta_high_s"):
            progress.ClearField(name)
        progress.items_per_second = progress.tokens_per_second = 0.0
        oldest = next((s for s in self._samples if s[0] >= now - WINDOW_S), None)
        if oldest is None or now - oldest[0] < SAMPLE_S:
            return
        span = now - oldest[0]
        rate = (self.items_done - oldest[1]) / span
        progress.items_per_second = rate
        progress.tokens_per_second = (self.output_tokens - oldest[2]) / span
        left = self.layout.items - self.items_done
        if rate <= 0 or left <= 0:
            return
        recent = [r for at, r in rates if at >= now - WINDOW_S]
        # The interval of a mean rate, from how much the seconds of the window differ among themselves.
        error = 0.0
        if len(recent) > 1:
            mean = sum(recent) / len(recent)
            error = 1.96 * math.sqrt(sum((r - mean) ** 2 for r in recent) / (len(recent) - 1) / len(recent))
        progress.eta_s = left / rate
        progress.eta_low_s = left / (rate + error)
        progress.eta_high_s = left / max(rate - error, rate / 4)

    def _sample_rates(self) -> list[tuple[float, float]]:
        pairs = zip(list(self._samples), list(self._samples)[1:], strict=False)
        return [(b[0], max(0.0, (b[1] - a[1]) / (b[0] - a[0]))) for a, b in pairs]
