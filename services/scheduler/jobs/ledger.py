"""The progress of a running job, counted from RESULTS headers. Pure: the caller brings the clock.

A unit that is delivered again starts from nothing, so its earlier count is dropped; a done unit counts its planned
items. Counting the same message twice is prevented by the stream position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

from services.scheduler.jobs.budget import Bill, Spending
from services.scheduler.jobs.eta import Rates, Sample, time_left
from services.scheduler.jobs.units import Charge, Flight, layout_of
from services.words.jobs import calls_nobody
from services.words.refusals import counted
from touchstone.v1 import job_pb2, job_record_pb2

if TYPE_CHECKING:
    from services.bus import ResultHeaders

_PLAIN = job_pb2.JobSpec()
_NO_CHARGE = Charge()
_COST_DIGITS = 12
"""Decimals of US dollars: beyond them, sums of the same prices differ by the order of addition."""


class Ledger:
    """Done and released units of one attempt, with rates and costs."""

    def __init__(self, tasks: list[job_pb2.TaskPlan], spec: job_pb2.JobSpec = _PLAIN) -> None:
        """`spec` says whether the calls cost anything, and whether each is noted before it begins."""
        self._paid_once = spec.provider_batch
        """A unit costs the same however often it is delivered."""
        self._free = calls_nobody(spec)
        self.tells = spec.budget_usd > 0 and not (self._paid_once or self._free)
        """Whether evaluators note each call before it begins."""
        self.layout = layout_of(tasks, spec)
        self._names = [task.task for task in tasks]
        self._most = [task.most_cost_usd for task in tasks]
        self._done = bytearray(-(-self.layout.units // 8))
        self._done_count = 0
        self._done_items, self._failed_items = [0] * len(tasks), [0] * len(tasks)
        self._tokens = self._untold = self._retries = 0
        self._bill = Bill()
        self._partial: dict[int, tuple[int, ...]] = {}
        self._flights: dict[int, Flight] = {}
        self.released: set[int] = set()
        self._charges: dict[int, Charge] = {}
        """By unit that was taken back."""
        self.kept_items = 0
        """Items that an earlier attempt has done."""
        self._next = 0
        self.sequence = 0
        self._rates = Rates()
        self.at_once = 0
        """Calls that the endpoint takes at the same time; 0 while unknown."""

    # -- storage -----------------------------------------------------------------------------------------------

    def save(self, record: job_record_pb2.JobRecord) -> None:
        """Writes what a restart needs. Units in flight are left out: their messages are replayed from the stream."""
        record.done_units = bytes(self._done)
        record.results_sequence = self._safe_sequence()
        del record.partial_units[:], record.failed_items[:], record.samples[:], record.charged_units[:]
        for unit, positions in self._partial.items():
            record.partial_units.add(unit=unit, positions=positions)
        record.failed_items.extend(self._failed_items)
        record.output_tokens, record.output_untold = self._tokens, self._untold
        record.retries = self._retries
        record.kept_items = self.kept_items
        self._bill.save(record)
        for sample in self._rates.samples:
            record.samples.add(at=sample.at, items=sample.items, tokens=sample.tokens, retries=sample.retries)
        for unit, charge in self._charges.items():
            record.charged_units.add(
                unit=unit, results_sequence=charge.sequence, times=charge.times, deliveries=charge.deliveries
            )

    def _safe_sequence(self) -> int:
        # Replaying from here must bring back every message of the unfinished units.
        return min((flight.first for flight in self._flights.values()), default=self.sequence)

    @classmethod
    def load(cls, record: job_record_pb2.JobRecord) -> Ledger:
        ledger = cls(list(record.job.plan), record.job.spec)
        for unit in range(ledger.layout.units):
            if unit // 8 < len(record.done_units) and record.done_units[unit // 8] >> (unit % 8) & 1:
                ledger._set_done(unit)
        ledger._failed_items = [*record.failed_items, *[0] * len(ledger._names)][: len(ledger._names)]
        ledger._tokens, ledger._retries = record.output_tokens, record.retries
        ledger._untold = record.output_untold
        ledger._partial = {p.unit: tuple(p.positions) for p in record.partial_units}
        ledger.kept_items = record.kept_items
        ledger.sequence = record.results_sequence
        ledger._bill.load(record)
        ledger._charges = {c.unit: Charge(c.results_sequence, c.times, c.deliveries) for c in record.charged_units}
        ledger._rates = Rates(Sample(s.at, s.items, s.tokens, s.retries) for s in record.samples)
        return ledger

    def keep(self, missing: Mapping[int, tuple[int, ...]]) -> None:
        """Marks every unit done that is not in `missing`: a retry has already stored it."""
        for unit in range(self.layout.units):
            if unit not in missing:
                self._set_done(unit)
        self._partial = {unit: positions for unit, positions in missing.items() if positions}
        self.kept_items = self.layout.items - sum(self.unit_items(unit) for unit in missing)

    def carry(self, before: job_pb2.Progress) -> None:
        """Takes over what earlier attempts have cost."""
        self._bill.carry(before)

    def rewind(self, end: int) -> None:
        """As Job.rewind: messages after `end` are news."""
        self.sequence = min(self.sequence, end)
        self._charges = {u: replace(charge, sequence=min(charge.sequence, end)) for u, charge in self._charges.items()}

    # -- events ------------------------------------------------------------------------------------------------

    def record(self, unit: int, headers: ResultHeaders, sequence: int) -> bool:
        """Counts one message; True when it finished its unit. Messages seen before and unknown units change nothing."""
        if not self._is_news(unit, sequence):
            return False
        if self._is_late(unit, headers) and unit not in self._flights and not headers.done:
            # It may not be out, and the most that its calls may cost is counted.
            self._bill.pay([] if headers.cost is None else [headers.cost / 1e6])
            self._charges[unit] = replace(self._charges[unit], sequence=sequence)
            return False
        is_out = unit in self._flights or unit in self.released
        flight = self._flights.setdefault(unit, self._flight(unit, sequence - 1))
        self.released.add(unit)
        flight.count(headers)
        # A slower earlier delivery may finish first: all items of the unit are stored then, too.
        if not headers.done:
            return False
        self._failed_items[self.layout.slice(unit).task] += flight.errors
        self._tokens += flight.tokens
        self._untold += flight.untold
        self._retries += flight.retries
        self._bill.pay(flight.costs)
        if flight.is_newest(headers):
            self._lose(unit, flight.lost_calls + flight.unpriced)
        elif is_out:
            # Another evaluator also has the unit, and the cost of its calls comes too late to be counted.
            self._lose(unit, flight.given_up(counted=self.tells))
        self._set_done(unit)
        return True

    def begun(self, unit: int, headers: ResultHeaders, sequence: int) -> None:
        """Notes how many of a unit's calls have begun."""
        if self._is_news(unit, sequence) and not self._is_late(unit, headers):
            self._flights.setdefault(unit, self._flight(unit, sequence - 1)).note(headers)
            self.released.add(unit)

    def returned(self, unit: int, headers: ResultHeaders, sequence: int) -> bool:
        """Notes that a unit has left WORK undone; True when it is to be released again."""
        if not self._is_news(unit, sequence):
            return False
        self.charge(unit, counted=headers.counted, delivery=headers.delivery)
        self.free(unit)
        return True

    def _is_news(self, unit: int, sequence: int) -> bool:
        if sequence <= self.sequence or not self.has(unit):
            return False
        self.sequence = sequence
        return not self.is_done(unit) and sequence > self._charge(unit).sequence

    def _is_late(self, unit: int, headers: ResultHeaders) -> bool:
        """Whether the evaluator has lost the unit, and its calls are accounted for."""
        return unit in self._charges and headers.delivery <= self.deliveries(unit)

    def _set_done(self, unit: int) -> None:
        self._done[unit // 8] |= 1 << (unit % 8)
        self._done_count += 1
        place = self.layout.slice(unit)
        self._done_items[place.task] += place.size
        self._flights.pop(unit, None)
        self.released.discard(unit)
        self._charges.pop(unit, None)

    def task_done(self, unit: int) -> str:
        """The task whose last unit this was, with its figures, in words; empty while others of it are missing."""
        task = self.layout.slice(unit).task
        items, failed = self._done_items[task], self._failed_items[task]
        if items < self.layout.task_items(task):
            return ""
        return f"{self._names[task]}: {counted(items, 'item')} done" + (
            f", {failed:,} without an answer" if failed else ""
        )

    def has(self, unit: int) -> bool:
        """Whether the plan has a unit of this number."""
        return 0 <= unit < self.layout.units

    def is_done(self, unit: int) -> bool:
        return bool(self._done[unit // 8] >> (unit % 8) & 1)

    def held_by(self, evaluator: str) -> list[int]:
        """Unfinished units that this evaluator has reported of last."""
        return sorted(unit for unit, flight in self._flights.items() if flight.evaluator == evaluator)

    # -- release -----------------------------------------------------------------------------------------------

    def unreleased(self, units: int, items: int = 0, before: int | None = None) -> list[tuple[int, int]]:
        """(unit, items) pairs that are neither done nor released, in plan order: enough for the given numbers of units
        and items, if there are. Units from number `before` on have to wait."""
        while self._next < self.layout.units and (self.is_done(self._next) or self._next in self.released):
            self._next += 1
        found: list[tuple[int, int]] = []
        missing = items
        for unit in range(self._next, self.layout.units if before is None else min(before, self.layout.units)):
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
        return self._partial.get(unit) or self.layout.positions(unit)

    def taken_back(self, unit: int) -> int:
        """How often the unit was taken back, so that an evaluator may have stored some of its answers."""
        return self._charge(unit).times

    def deliveries(self, unit: int) -> int:
        """Number of the last delivery whose calls are accounted for: the next one has a higher number."""
        return self._charge(unit).deliveries

    def _charge(self, unit: int) -> Charge:
        return self._charges.get(unit, _NO_CHARGE)

    def charge(self, unit: int, *, counted: bool = False, delivery: int = 0) -> None:
        """The unit is not with an evaluator after all. The possible cost of its calls counts permanently: of the noted
        calls if each is `counted` before it begins, else of all its items. `delivery` is its newest known one. `free`
        lets it go out again."""
        flight = self._flights.pop(unit, None) or self._flight(unit, 0)
        self._bill.pay(flight.costs)
        self._lose(unit, flight.given_up(counted=counted))
        before = self._charge(unit)
        # A provider's batch is read again and again under separate numbers.
        deliveries = 0 if self._paid_once else max(flight.delivery, delivery, before.deliveries + 1)
        self._charges[unit] = Charge(self.sequence, before.times + 1, deliveries)

    def close_if_stored(self, unit: int, stored: Mapping[str, set[int]]) -> bool:
        """Marks a charged unit done when all of its answers are stored. `stored` has positions by task."""
        place = self.layout.slice(unit)
        wanted = self.positions(unit) or range(place.start, place.stop)
        if not stored.get(self._names[place.task], set()).issuperset(wanted):
            return False
        self._set_done(unit)
        return True

    def _lose(self, unit: int, calls: int) -> None:
        """Counts calls whose price will never be known."""
        if not (self._paid_once or self._free):
            self._bill.lose(calls, self._most_cost(unit))

    def free(self, unit: int) -> None:
        """A charged unit may be released again."""
        self.released.discard(unit)
        self._next = min(self._next, unit)

    @property
    def out(self) -> list[int]:
        """Units that some evaluator may have: a return that is read again after a restart frees a unit that is out."""
        return sorted(self.released | self._charges.keys())

    @property
    def in_flight_items(self) -> int:
        return sum(self.unit_items(unit) - self.counted(unit) for unit in self.released)

    def counted(self, unit: int) -> int:
        """Items of an unfinished unit that are already counted."""
        return self._flights[unit].items if unit in self._flights else 0

    # -- costs -------------------------------------------------------------------------------------------------

    def _flight(self, unit: int, first: int) -> Flight:
        once = self._paid_once or self._free
        return Flight(self.unit_items(unit), self._most_cost(unit), first, once, self.deliveries(unit))

    def _most_cost(self, unit: int) -> float:
        return self._most[self.layout.slice(unit).task]

    def unit_cost(self, unit: int) -> float:
        """US dollars that all of the unit's calls may cost at most."""
        return self._most_cost(unit) * self.unit_items(unit)

    @property
    def cost_usd(self) -> float | None:
        """US dollars of the answers; None if no price is known."""
        known = [*self._bill.costs, *(cost for flight in self._flights.values() for cost in flight.costs)]
        return fsum(known) if known else None

    @property
    def open_calls(self) -> int:
        """The most calls that are under way or may still begin."""
        flights = self._flights
        return sum(flights[unit].silent if unit in flights else self.unit_items(unit) for unit in self.released)

    def spending(self) -> Spending:
        flights = self._flights
        fresh = sum(self.unit_cost(unit) for unit in self.released if unit not in flights)
        return Spending(
            spent=self.cost_usd or 0.0,
            lost=self._bill.lost + sum(flight.lost for flight in flights.values()),
            reserved=fresh + sum(flight.open for flight in flights.values()),
        )

    # -- figures -----------------------------------------------------------------------------------------------

    @property
    def all_done(self) -> bool:
        return self._done_count == self.layout.units

    @property
    def items_done(self) -> int:
        return self.items_of_done_units + sum(min(f.items, self.unit_items(u)) for u, f in self._flights.items())

    @property
    def items_of_done_units(self) -> int:
        return sum(self._done_items)

    def pace(self, now: float) -> float:
        """Items per second lately; 0 in the first moments."""
        return self._rates.pace(now, self.items_done)

    @property
    def items_failed(self) -> int:
        return sum(self._failed_items) + sum(f.errors for f in self._flights.values())

    @property
    def output_tokens(self) -> int:
        return self._tokens + sum(f.tokens for f in self._flights.values())

    def sample(self, now: float) -> None:
        """Notes the present figures for the rates; call it about once a second."""
        retries = self._retries + sum(flight.retries for flight in self._flights.values())
        self._rates.add(Sample(now, self.items_done, self.output_tokens, retries))

    def progress(self, now: float, progress: job_pb2.Progress) -> None:
        """Fills in counts, costs, rates and the time left."""
        progress.items_total = self.layout.items
        progress.items_done = self.items_done
        progress.items_failed = self.items_failed
        progress.units_total = self.layout.units
        progress.units_done = self._done_count
        progress.units_released = len(self.released)
        progress.output_tokens = self.output_tokens
        progress.output_untold = self._untold + sum(flight.untold for flight in self._flights.values())
        spending = self.spending()
        progress.ClearField("cost_usd")
        if (cost := self.cost_usd) is not None:
            progress.cost_usd = round(cost, _COST_DIGITS)
        progress.reserved_usd = spending.lost + spending.reserved
        progress.lost_usd = spending.lost
        progress.lost_calls = self._bill.lost_calls + sum(flight.lost_calls for flight in self._flights.values())
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
        self._tell_rates(now, progress)

    def _tell_rates(self, now: float, progress: job_pb2.Progress) -> None:
        del progress.rate_history[:]
        progress.rate_history.extend(self._rates.history())
        for name in ("eta_s", "eta_low_s", "eta_high_s"):
            progress.ClearField(name)
        progress.items_per_second = progress.tokens_per_second = 0.0
        recent = self._rates.recent(now)
        # A batch's answers come all at once, after hours: no rate predicts when.
        if recent is None or self._paid_once:
            return
        span = now - recent.at
        progress.items_per_second = max(0.0, (self.items_done - recent.items) / span)
        progress.tokens_per_second = max(0.0, (self.output_tokens - recent.tokens) / span)
        left = time_left(self._rates, now, self.items_done, self.layout.items, progress.items_per_second, self.at_once)
        if left is not None:
            progress.eta_s, progress.eta_low_s, progress.eta_high_s = left.value, left.low, left.high
