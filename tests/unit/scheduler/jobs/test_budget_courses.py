"""A job's bill under every course of events: it is an upper bound at each moment, and the job comes to an end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from services.bus import KIND_BEGUN, KIND_ITEMS, KIND_RETURNED, ResultHeaders
from services.scheduler.jobs.budget import affordable
from services.scheduler.jobs.ledger import Ledger
from touchstone.v1 import job_pb2, job_record_pb2

MOST = 0.01
"""US dollars that one answer may cost."""


@dataclass
class Hand:
    """An evaluator's hold of a unit. `frozen` ones have lost it and do not know."""

    unit: int
    number: int
    size: int
    stored: int
    """Items that were stored before."""
    last: int
    """Its newest message of the unit, or the one before its release."""
    calls: int = 0
    waiting: list[float] = field(default_factory=list)
    """Prices of answers that nobody has been told of."""
    told: int = 0
    frozen: bool = False

    @property
    def left(self) -> int:
        return self.size - self.stored - self.calls


class Course:
    """Evaluators, a scheduler and a provider's till. `tells`: evaluators tell of each call before they make it."""

    def __init__(self, seed: int, budget: float, tells: bool) -> None:
        self.rng = random.Random(seed)
        self.budget, self.tells = budget, tells
        tasks = [job_pb2.TaskPlan(task="one", items=24, unit_size=self.rng.choice((1, 4, 7)), most_cost_usd=MOST)]
        spec = job_pb2.JobSpec(budget_usd=budget)
        self.ledger = Ledger(tasks, spec)
        self.saved = job_record_pb2.JobRecord(job=job_pb2.Job(plan=tasks, spec=spec))
        self.ledger.save(self.saved)
        self.log: list[tuple[int, ResultHeaders]] = []
        self.newest: dict[int, int] = {}
        """By unit, its newest message."""
        self.kept: dict[int, int] = {}
        """By unit, how many of its items are stored."""
        self.hands: list[Hand] = []
        self.charged = 0.0
        self.asked = self.priced = 0

    # -- messages ----------------------------------------------------------------------------------------------

    def tell(self, unit: int, headers: ResultHeaders) -> int:
        self.log.append((unit, headers))
        self.newest[unit] = len(self.log)
        self.show(unit, headers, len(self.log))
        return len(self.log)

    def show(self, unit: int, headers: ResultHeaders, sequence: int) -> None:
        if headers.kind == KIND_RETURNED:
            self.ledger.returned(unit, headers, sequence)
        elif headers.kind == KIND_BEGUN:
            self.ledger.begun(unit, headers, sequence)
        else:
            self.ledger.record(unit, headers, sequence)

    def overtaken(self, hand: Hand) -> bool:
        return self.newest.get(hand.unit, 0) > hand.last

    # -- what happens ------------------------------------------------------------------------------------------

    def release(self) -> bool:
        """False when nothing is out and nothing can go out."""
        units = self.ledger.unreleased(4, 20)
        costs = [self.ledger.unit_cost(unit) for unit, _ in units]
        fitting = affordable(self.budget, self.ledger.spending(), units, costs)
        for unit, size in fitting[: self.rng.randint(0, 4)]:
            self.ledger.released.add(unit)
            number = self.ledger.deliveries(unit) + 1
            hand = Hand(unit, number, size, self.kept.get(unit, 0), self.ledger.sequence)
            self.hands.append(hand)
            if hand.stored:
                # They are told before any call is.
                hand.told = hand.stored
                self._publish(hand, hand.stored, [])
        return bool(self.ledger.released or fitting)

    def call(self, hand: Hand) -> None:
        if hand.left <= 0:
            return
        if self.tells:
            if self.overtaken(hand):
                self.let_go(hand)
                return
            begun = hand.stored + hand.calls + 1
            hand.last = self.tell(hand.unit, ResultHeaders(KIND_BEGUN, 1, hand.number, "one", begun))
        cost = MOST * self.rng.choice((1.0, 1.0, 0.3, 0.01))
        hand.calls += 1
        self.asked += 1
        self.charged += cost
        hand.waiting.append(cost)

    def publish(self, hand: Hand) -> None:
        """Answers are stored in any case."""
        if hand.waiting:
            prices = hand.waiting[: self.rng.randint(1, len(hand.waiting))]
            del hand.waiting[: len(prices)]
            hand.told += len(prices)
            self._publish(hand, len(prices), prices)

    def _publish(self, hand: Hand, items: int, prices: list[float]) -> None:
        known = prices[1:] if prices and self.rng.random() < 0.1 else prices
        cost = sum(known) * 1e6 if known else None
        done = hand.told == hand.size
        self.priced += len(known)
        overtaken = self.overtaken(hand)
        headers = ResultHeaders(
            KIND_ITEMS, 1, hand.number, "one", items, done=done, cost=cost, unpriced=len(prices) - len(known)
        )
        last = self.tell(hand.unit, headers)
        self.kept[hand.unit] = max(self.kept.get(hand.unit, 0), hand.told)
        if done:
            self.hands.remove(hand)
        elif overtaken and self.tells:
            self.let_go(hand)
        else:
            hand.last = last

    def let_go(self, hand: Hand) -> None:
        """Another message shows that the unit is lost. Where it still is its own, whoever gets it next returns it."""
        self.hands.remove(hand)
        if not hand.frozen:
            self.tell(hand.unit, ResultHeaders(KIND_RETURNED, 1, hand.number + 1, counted=self.tells))

    def lose(self, hand: Hand, *, frozen: bool, redelivered: bool) -> None:
        """Killed, frozen or stopped. Whoever gets the unit next returns it, or the scheduler finds it gone."""
        if hand.frozen:
            self.hands.remove(hand)
            return
        if frozen:
            hand.frozen = True
        else:
            self.hands.remove(hand)
        number = hand.number + 1 if redelivered else 0
        self.tell(hand.unit, ResultHeaders(KIND_RETURNED, 1, number, counted=self.tells))

    def restart(self) -> None:
        out = set(self.ledger.released)
        self.ledger = Ledger.load(self.saved)
        self.ledger.released |= {unit for unit in out if not self.ledger.is_done(unit)}
        for sequence, (unit, headers) in enumerate(self.log, 1):
            if sequence > self.saved.results_sequence:
                self.show(unit, headers, sequence)

    def end(self) -> None:
        """The job is cancelled: its units are closed."""
        for unit in self.ledger.out:
            self.tell(unit, ResultHeaders(KIND_RETURNED, 1, 0, counted=self.tells))
        for hand in list(self.hands):
            self.call(hand)
            if hand in self.hands:
                self.publish(hand)

    def step(self) -> bool:
        if not self.release():
            return False
        if self.hands:
            hand = self.rng.choice(self.hands)
            what = self.rng.choice(("call",) * 6 + ("publish",) * 4 + ("kill", "freeze", "stop"))
            if what == "call":
                self.call(hand)
            elif what == "publish":
                self.publish(hand)
            else:
                self.lose(hand, frozen=what == "freeze", redelivered=what != "stop")
        if self.rng.random() < 0.1:
            self.ledger.save(self.saved)
        if self.rng.random() < 0.05:
            self.restart()
        return True

    def check(self) -> None:
        assert self.charged <= self.ledger.spending().most + 1e-9
        assert self.charged <= self.budget + 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_no_course_of_kills_freezes_stops_and_restarts_passes_the_budget(seed: int) -> None:
    course = Course(seed, random.Random(seed).uniform(0.05, 1.0), tells=seed % 3 > 0)
    for _ in range(1000):
        if not course.step():
            break
        course.check()
    else:
        pytest.fail("the job never ends")
    assert course.charged > 0


@pytest.mark.parametrize("seed", range(40))
def test_a_job_that_is_cancelled_counts_the_calls_that_may_be_charged_and_no_others(seed: int) -> None:
    course = Course(seed, 1.0, tells=True)
    for _ in range(random.Random(seed).randint(5, 150)):
        course.step()
    course.end()
    course.check()
    assert not course.ledger.released
    progress = job_pb2.Progress()
    course.ledger.progress(0.0, progress)
    assert progress.reserved_usd == progress.lost_usd
    assert course.asked - course.priced <= progress.lost_calls <= course.asked


@pytest.mark.parametrize("seed", range(10))
def test_a_unit_whose_evaluator_stops_a_dozen_times_keeps_its_bill_and_its_job_ends(seed: int) -> None:
    course = Course(seed, 0.5, tells=True)
    for _ in range(12):
        course.release()
        for hand in list(course.hands):
            for _ in range(course.rng.randint(0, 2)):
                course.call(hand)
            course.publish(hand)
            if hand in course.hands:
                course.lose(hand, frozen=False, redelivered=course.rng.random() < 0.5)
            course.check()
    for _ in range(1000):
        if not course.step():
            break
        course.check()
    assert course.ledger.all_done or course.ledger.spending().most + 7 * MOST > 0.5
