from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.queue import Active, Waiting, choose, order


def active(
    job: str, owner: str = "a", priority: float = 3, since: float = 0, flying: int = 0, units: int = 50
) -> Active:
    return Active(job, owner, priority, since, flying // 10, flying, [(i, 10) for i in range(units)])


def test_high_goes_before_normal_before_low_and_first_come_first_served_within() -> None:
    jobs = [Waiting("low", 1, 0), Waiting("second", 3, 2), Waiting("normal", 2, 0), Waiting("first", 3, 1)]
    assert [w.job_id for w in order(jobs, 3, 600)] == ["first", "second", "normal", "low"]


def test_a_low_job_that_has_waited_long_enough_goes_before_a_new_high_one() -> None:
    jobs = [Waiting("old-low", 1, 0), Waiting("new-high", 3, 1100)]
    assert [w.job_id for w in order(jobs, 1199, 600)] == ["new-high", "old-low"]
    assert next(iter(order(jobs, 1200, 600))).job_id == "old-low"


def test_low_never_starves_under_an_endless_stream_of_high_jobs() -> None:
    waiting = [Waiting("low", 1, 0)]
    for now in range(0, 4000, 10):
        waiting.append(Waiting(f"high-{now}", 3, now))
        started = order(waiting, now, 600)[0]
        waiting.remove(started)
        if started.job_id == "low":
            return
        waiting.append(Waiting(f"more-{now}", 3, now))
    raise AssertionError("the low job never ran")


def test_twice_the_capacity_is_released() -> None:
    chosen = choose([active("j")], capacity=16, evaluators=1, exclusive=False)
    assert [unit for _, unit in chosen] == [0, 1, 2, 3]


def test_every_evaluator_has_two_units_even_when_units_are_large() -> None:
    job = Active("j", "a", 3, 0, 0, 0, [(i, 1000) for i in range(20)])
    assert len(choose([job], capacity=4, evaluators=3, exclusive=False)) == 6


def test_nothing_is_released_while_enough_is_in_flight() -> None:
    assert choose([active("j", flying=40)], capacity=16, evaluators=1, exclusive=False) == []


def test_the_higher_priority_takes_all_room() -> None:
    jobs = [active("normal", priority=2), active("high", priority=3)]
    assert {job for job, _ in choose(jobs, capacity=16, evaluators=1, exclusive=False)} == {"high"}


def test_equal_jobs_of_two_owners_share_evenly_however_many_jobs_one_has() -> None:
    jobs = [active("a1", "a"), active("a2", "a"), active("b1", "b")]
    chosen = choose(jobs, capacity=60, evaluators=1, exclusive=False)
    assert sum(job == "b1" for job, _ in chosen) == 6
    assert sum(job == "a1" for job, _ in chosen) == sum(job == "a2" for job, _ in chosen) == 3


def test_an_exclusive_endpoint_serves_one_job_at_a_time_in_job_order() -> None:
    jobs = [active("second", since=2), active("first", since=1, units=1)]
    assert choose(jobs, capacity=100, evaluators=1, exclusive=True) == [("first", 0)]


def test_no_evaluator_no_release() -> None:
    assert choose([active("j")], capacity=0, evaluators=0, exclusive=False) == []


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 30), st.integers(0, 20)), max_size=8),
    st.integers(1, 64),
    st.integers(1, 4),
)
def test_no_unit_is_chosen_twice_and_room_is_filled(
    made: list[tuple[int, int, int, int]], capacity: int, evaluators: int
) -> None:
    jobs = [
        Active(f"j{i}", f"o{owner}", priority, i, flying, flying * 7, [(u, 7) for u in range(units)])
        for i, (owner, priority, flying, units) in enumerate(made)
    ]
    chosen = choose(jobs, capacity=capacity, evaluators=evaluators, exclusive=False)
    assert len(set(chosen)) == len(chosen)
    items = sum(j.in_flight_items for j in jobs) + 7 * len(chosen)
    units = sum(j.in_flight_units for j in jobs) + len(chosen)
    left = sum(len(j.next_units) for j in jobs) - len(chosen)
    assert left == 0 or (items >= 2 * capacity and units >= 2 * evaluators)
