"""The time left and its interval, on drawn runs with fixed seeds and on made ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from statistics import median

import pytest

from services.scheduler.jobs import eta
from services.scheduler.jobs.eta import Rates, Sample, TimeLeft, time_left
from tests.calibration.runs import Run, Told, drawn, run

RUNS = 200


@cache
def told(slowdown: float, bursts: bool = True, around: float = 0.0) -> dict[float, list[Told]]:
    """Predictions at a quarter, half and three quarters of 200 runs that slow down midway, give or take `around`."""
    found: dict[float, list[Told]] = {}
    for seed in range(RUNS):
        rng = random.Random(seed)
        calm = {} if bursts else {"burst_every_s": 0.0}
        world = drawn(rng, slowdown=slowdown, midway=0.5 + rng.uniform(-around, around), **calm)
        for one in run(world, rng):
            found.setdefault(one.share, []).append(one)
    return found


def coverage(found: list[Told]) -> float:
    return sum(one.covered for one in found) / RUNS


def later(found: list[Told]) -> float:
    """The upper end over the middle, of half of the runs at most."""
    return median(one.left.high / one.left.value for one in found)


@pytest.mark.calibration
def test_at_a_quarter_nine_in_ten_intervals_hold_the_end_of_runs_that_become_three_times_slower_midway() -> None:
    assert coverage(told(3.0)[0.25]) >= 0.9
    assert coverage(told(3.0, around=0.1)[0.25]) >= 0.9


@pytest.mark.calibration
def test_steady_runs_end_within_their_intervals_at_any_time() -> None:
    for bursts in (True, False):
        for share, found in told(1.0, bursts).items():
            assert coverage(found) >= 0.92, f"at {share}, bursts: {bursts}"


@pytest.mark.stack
def test_after_a_slowdown_the_interval_holds_again() -> None:
    assert coverage(told(3.0)[0.75]) >= 0.9


def test_an_interval_of_a_calm_run_is_no_wider_than_a_slowdown_asks_and_narrows_towards_the_end() -> None:
    calm = told(1.0, bursts=False)
    widths = [later(calm[share]) for share in (0.25, 0.5, 0.75)]
    assert widths[0] < 3.6
    assert widths[1] < 2.2
    assert widths[2] < 1.7
    assert median(one.left.low / one.left.value for one in calm[0.25]) > 0.65


def test_bursts_of_refusals_make_the_interval_wider() -> None:
    for share in (0.25, 0.5, 0.75):
        assert later(told(1.0)[share]) > 1.1 * later(told(1.0, bursts=False)[share])


def steady(seconds: int, per_second: int, retried: float = 0.0) -> Rates:
    rates = Rates()
    for second in range(seconds + 1):
        items = per_second * second
        rates.add(Sample(1000.0 + second, items, 0, int(retried * items)))
    return rates


def predicted(rates: Rates, items: int, total: int = 10_000, rate: float = 10.0, at_once: int = 0) -> TimeLeft:
    left = time_left(rates, rates.samples[-1].at, items, total, rate, at_once)
    assert left is not None
    return left


def test_the_middle_is_what_is_left_over_the_present_rate() -> None:
    assert predicted(steady(300, 10), 3000).value == pytest.approx(700)


def test_retries_widen_the_interval_even_when_the_pace_is_even() -> None:
    widths = []
    for retried in (0.0, 0.05, 0.5, 3.0):
        left = predicted(steady(300, 10, retried), 3000)
        widths.append(left.high / left.low)
    assert widths == sorted(widths)
    assert widths[1] > 1.1 * widths[0]


def test_the_interval_narrows_as_the_run_goes_on() -> None:
    widths = []
    for seconds in (50, 200, 500, 800, 950):
        left = predicted(steady(seconds, 10), 10 * seconds)
        widths.append(left.high / left.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1.3


def test_the_interval_reaches_to_what_the_whole_run_says_where_the_last_half_minute_says_otherwise() -> None:
    rates = steady(300, 10)
    left = predicted(rates, 3000, rate=2.0)
    assert left.value == pytest.approx(3500)
    assert left.low < 700


def test_the_last_calls_are_waited_for() -> None:
    few, many = (predicted(steady(90, 10), 900, 1000, at_once=at_once) for at_once in (2, 64))
    assert many.high - few.high > 5


@pytest.mark.parametrize(
    "ask",
    [
        lambda: time_left(Rates(), 0.0, 0, 10, 1.0),
        lambda: time_left(steady(30, 10), 1030.0, 300, 1000, 0.0),
        lambda: time_left(steady(30, 10), 1030.0, 1000, 1000, 10.0),
        lambda: time_left(Rates([Sample(5.0, 0)]), 5.0, 1, 10, 1.0),
    ],
)
def test_where_nothing_can_be_told_nothing_is(ask: Callable[[], TimeLeft | None]) -> None:
    assert ask() is None


def test_drawn_runs_answer_everything_and_are_the_same_each_time() -> None:
    world = Run(items=500, slots=8, median_s=1.0, burst_every_s=20.0)
    first, second = (run(world, random.Random(1)) for _ in range(2))
    assert first == second
    assert [one.share for one in first] == [0.25, 0.5, 0.75]
    assert all(one.truth > 0 for one in first)


def test_the_last_items_of_a_bursty_run_are_no_matter_of_centuries() -> None:
    rates = Rates(Sample(float(second), 0 if second < 29 else 40_000) for second in range(31))
    left = time_left(rates, 30.0, 40_000, 40_001, 40_000 / 30)
    assert left is not None
    assert left.low <= left.value <= left.high < 60


def test_waiting_for_the_first_answer_is_no_pace() -> None:
    rates = Rates()
    for second in range(100):
        rates.add(Sample(float(second), 0))
    rates.add(Sample(100.0, 10))
    assert [sample.at for sample in rates.samples] == [99.0, 100.0]


def test_a_day_of_samples_stays_few_and_tells_the_last_minute_exactly() -> None:
    rates = Rates()
    for second in range(86_400):
        rates.add(Sample(float(second), 3 * second))
    assert len(rates.samples) < 300
    assert rates.samples[0].at == 0
    assert rates.history() == [3.0] * 60
    assert rates.at(40_000.5).items == pytest.approx(120_000, abs=2)


def test_waiting_jobs_start_as_slots_become_free() -> None:
    holding, waiting = [eta.Run(60), eta.Run(20)], [eta.Run(100), eta.Run(10), eta.Run(10)]
    assert eta.starts(holding, waiting, 2) == [20, 60, 70]
    assert eta.starts(holding, waiting, 3) == [0, 20, 30]
    assert eta.starts([*holding, eta.Run(5)], waiting, 2) == [20, 60, 70], "one more than the slots frees none"


def test_a_waiting_job_starts_when_its_exclusive_endpoint_is_free() -> None:
    holding, waiting = [eta.Run(60, "ollama")], [eta.Run(100, "ollama"), eta.Run(10), eta.Run(10, "ollama")]
    assert eta.starts(holding, waiting, 4) == [60, 0, 160]


def test_behind_a_job_of_unknown_length_no_start_is_known() -> None:
    assert eta.starts([eta.Run(math.inf)], [eta.Run(10)], 1) == [math.inf]
    assert eta.starts([], [eta.Run(10)], 0) == [math.inf]
