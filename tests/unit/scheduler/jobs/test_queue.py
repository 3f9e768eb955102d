"""The order of jobs, and of units on their endpoints."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.jobs.queue import Active, Waiting, choose, level, order


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


def names(jobs: list[Waiting], now: float = 100, held: dict[str, int] | None = None) -> list[str]:
    return [job.job_id for job in order(jobs, now, 600, held=held)]


def owned(owner: str, *since: float, priority: int = 3) -> list[Waiting]:
    return [Waiting(f"{owner}{place}", priority, at, owner=owner) for place, at in enumerate(since, 1)]


def test_users_take_turns_within_a_priority_and_each_ones_jobs_start_in_order() -> None:
    jobs = owned("a", 1, 2, 3, 4) + owned("b", 5, 6) + owned("c", 7)
    assert names(jobs) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_a_user_whose_jobs_run_waits_for_one_who_has_none() -> None:
    jobs = owned("a", 1, 2, 3) + owned("b", 5, 6)
    assert names(jobs, held={"a": 1}) == ["b1", "a1", "b2", "a2", "a3"]
    assert names(jobs, held={"a": 3}) == ["b1", "b2", "a1", "a2", "a3"]


@given(st.floats(0, 10_000), st.integers(0, 3))
def test_a_second_users_first_job_waits_for_no_second_of_the_first_however_long_those_have_waited(
    waited: float, held: int
) -> None:
    jobs = owned("a", *range(10)) + owned("b", 10 + waited)
    assert names(jobs, now=10 + waited, held={"a": held}).index("b1") <= 1


def test_turns_are_taken_within_a_priority_only() -> None:
    jobs = owned("a", 1, 2) + owned("b", 3, priority=2)
    assert names(jobs) == ["a1", "a2", "b1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(0, 3000)), max_size=25))
def test_every_job_has_one_place_and_each_users_jobs_of_a_priority_keep_their_order(
    made: list[tuple[str, int, int]],
) -> None:
    jobs = [Waiting(f"{n:02d}", priority, since, owner=owner) for n, (owner, priority, since) in enumerate(made)]
    ordered = order(jobs, 3000, 600)
    assert sorted(job.job_id for job in ordered) == [job.job_id for job in jobs]
    for owner in "abc":
        for priority in (1, 2, 3):
            own = [job for job in ordered if (job.owner, job.priority) == (owner, priority)]
            assert own == sorted(own, key=lambda job: (job.since, job.job_id))


def test_a_users_old_jobs_lift_no_fresh_ones_of_others_past_a_higher_priority() -> None:
    jobs = owned("old", 0, 1, priority=1) + owned("fresh", 1200, priority=1) + owned("high", 1190)
    assert names(jobs, now=1210) == ["old1", "old2", "high1", "fresh1"]


def test_a_fresh_job_keeps_its_turn_among_those_of_its_priority_however_old_they_are() -> None:
    jobs = owned("old", 0, 1, 2, priority=1) + owned("fresh", 1200, priority=1)
    assert names(jobs, now=1210) == ["old1", "fresh1", "old2", "old3"]


def test_jobs_that_no_evaluator_serves_go_last_and_take_no_turn() -> None:
    jobs = [
        Waiting("a-unserved", 3, 1, owner="a", served=False),
        Waiting("b-first", 3, 2, owner="b"),
        Waiting("b-second", 3, 3, owner="b"),
        Waiting("a-first", 3, 4, owner="a"),
        Waiting("c-low", 1, 5, owner="c"),
    ]
    assert names(jobs) == ["b-first", "a-first", "b-second", "c-low", "a-unserved"]


def test_jobs_that_wait_for_an_exclusive_endpoint_take_no_turn_from_those_that_can_run() -> None:
    jobs = [
        Waiting("a-gpu", 3, 1, "gpu", owner="a"),
        Waiting("b-first", 3, 2, owner="b"),
        Waiting("b-second", 3, 3, owner="b"),
        Waiting("a-first", 3, 4, owner="a"),
    ]
    assert started(jobs, busy={"gpu": 3}) == ["b-first", "a-first", "b-second", "a-gpu"]


def test_jobs_that_wait_behind_others_are_in_turns_and_their_users_turns_before_count() -> None:
    jobs = [
        Waiting("a-api", 3, 1, owner="a"),
        Waiting("a-gpu", 3, 2, "gpu", owner="a"),
        Waiting("a-gpu-2", 3, 3, "gpu", owner="a"),
        Waiting("b-gpu", 3, 4, "gpu", owner="b"),
        Waiting("b-gpu-2", 3, 5, "gpu", owner="b"),
    ]
    assert started(jobs, busy={"gpu": 3}) == ["a-api", "b-gpu", "a-gpu", "b-gpu-2", "a-gpu-2"]


def test_an_old_job_that_nobody_serves_lifts_no_others_of_its_priority() -> None:
    jobs = [Waiting("a", 1, 0, owner="a", served=False), *owned("b", 1200, priority=1), *owned("c", 1205)]
    assert names(jobs, now=1210) == ["c1", "b1", "a"]


NOW = 3000.0
JOBS = st.lists(
    st.builds(
        Waiting,
        job_id=st.uuids().map(str),
        priority=st.integers(1, 3),
        since=st.integers(0, int(NOW)).map(float),
        exclusive=st.sampled_from(["", "", "gpu", "tpu"]),
        warm=st.booleans(),
        owner=st.sampled_from("abcd"),
        served=st.booleans(),
    ),
    max_size=20,
)
BUSY = st.dictionaries(st.sampled_from(["gpu", "tpu"]), st.integers(1, 3))
HELD = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))


def aged(job: Waiting) -> float:
    return level(job.priority, NOW - job.since, 600)


def able(jobs: list[Waiting], busy: dict[str, int]) -> list[Waiting]:
    """Of jobs in order, those that wait neither for an evaluator nor at an exclusive endpoint."""
    taken, found = dict(busy), []
    for job in jobs:
        if job.served and not (job.exclusive and taken.get(job.exclusive, 0) >= job.priority):
            found.append(job)
            if job.exclusive:
                taken[job.exclusive] = job.priority
    return found


@given(JOBS, BUSY, HELD)
def test_each_job_has_one_place_and_those_that_can_run_have_the_first(
    jobs: list[Waiting], busy: dict[str, int], held: dict[str, int]
) -> None:
    ordered = order(jobs, NOW, 600, busy, held)
    assert sorted(job.job_id for job in ordered) == sorted(job.job_id for job in jobs)
    first = able(ordered, busy)
    assert ordered[: len(first)] == first
    assert sorted(ordered, key=lambda job: not job.served) == ordered


@given(JOBS, BUSY, HELD)
def test_no_job_passes_one_of_a_higher_priority_by_the_age_of_another(
    jobs: list[Waiting], busy: dict[str, int], held: dict[str, int]
) -> None:
    for earlier, later in combinations(able(order(jobs, NOW, 600, busy, held), busy), 2):
        assert earlier.priority >= later.priority or aged(earlier) >= aged(later)


@given(JOBS, BUSY)
def test_an_owner_has_a_second_turn_before_anothers_first_only_by_age_against_a_higher_priority(
    jobs: list[Waiting], busy: dict[str, int]
) -> None:
    ordered = able(order(jobs, NOW, 600, busy), busy)
    for priority in (1, 2, 3):
        above = [job for job in ordered if job.priority > priority]
        own = [job for job in ordered if job.priority == priority]
        for (at, job), (other_at, other) in permutations(enumerate(own), 2):
            turn = sum(before.owner == job.owner for before in own[:at])
            other_turn = sum(before.owner == other.owner for before in own[:other_at])
            if at < other_at and turn > other_turn:
                later = ordered[ordered.index(job) :]
                assert any(aged(other) < aged(higher) <= aged(job) and higher in later for higher in above)


@given(JOBS, BUSY)
def test_every_owner_of_a_job_that_can_run_has_a_turn_within_as_many_picks_as_there_are_owners(
    jobs: list[Waiting], busy: dict[str, int]
) -> None:
    equal = [replace(job, priority=2) for job in jobs]
    ordered = able(order(equal, NOW, 600, busy), busy)
    owners = {job.owner for job in ordered}
    assert {job.owner for job in ordered[: len(owners)]} == owners


@given(JOBS, BUSY, HELD)
def test_jobs_that_nobody_serves_change_the_order_of_no_others(
    jobs: list[Waiting], busy: dict[str, int], held: dict[str, int]
) -> None:
    served = [job for job in jobs if job.served]
    assert order(jobs, NOW, 600, busy, held)[: len(served)] == order(served, NOW, 600, busy, held)


def test_twice_the_capacity_is_released() -> None:
    chosen = choose([active("j")], capacity=16, evaluators=1, exclusive=False)
    assert [unit for _, unit in chosen] == [0, 1, 2, 3]


def test_every_evaluator_has_two_units_even_when_units_are_large() -> None:
    job = Active("j", "a", 3, 0, 0, 0, [(i, 1000) for i in range(20)])
    assert len(choose([job], capacity=4, evaluators=3, exclusive=False)) == 6


def test_nothing_is_released_while_enough_is_in_flight() -> None:
    assert choose([active("j", flying=40)], capacity=16, evaluators=1, exclusive=False) == []


def test_a_job_with_nothing_under_way_gets_a_unit_even_when_others_fill_the_endpoint() -> None:
    jobs = [active("first", "a", flying=40), active("new", "b"), active("low", "c", priority=2)]
    assert choose(jobs, capacity=16, evaluators=1, exclusive=False) == [("new", 0)]


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


def waiting(job: str, since: float, exclusive: str = "", warm: bool = False, priority: int = 3) -> Waiting:
    return Waiting(job, priority, since, exclusive, warm)


def started(jobs: list[Waiting], now: float = 100, busy: dict[str, int] | None = None) -> list[str]:
    return [w.job_id for w in order(jobs, now, 600, busy)]


def test_of_equal_jobs_of_an_exclusive_endpoint_the_one_whose_model_is_resident_starts_first() -> None:
    jobs = [waiting("cold", 1, "gpu"), waiting("warm", 2, "gpu", warm=True)]
    assert started(jobs) == ["warm", "cold"]


def test_a_resident_model_gives_no_user_the_turn_of_another() -> None:
    jobs = [
        Waiting("a-warm", 3, 1, "gpu", warm=True, owner="a"),
        Waiting("a-also-warm", 3, 2, "gpu", warm=True, owner="a"),
        Waiting("b-cold", 3, 3, "gpu", owner="b"),
    ]
    assert started(jobs) == ["a-warm", "b-cold", "a-also-warm"]


def test_a_resident_model_moves_a_job_only_among_those_of_its_endpoint() -> None:
    jobs = [waiting("cold", 1, "gpu"), waiting("other", 2), waiting("warm", 3, "gpu", warm=True)]
    assert started(jobs)[:2] == ["warm", "other"]


def test_a_job_that_has_waited_a_level_longer_starts_before_one_whose_model_is_resident() -> None:
    jobs = [waiting("cold", 0, "gpu"), waiting("warm", 500, "gpu", warm=True)]
    assert started(jobs, now=599) == ["warm", "cold"]
    assert started(jobs, now=600) == ["cold", "warm"]


def test_a_more_urgent_job_starts_before_one_whose_model_is_resident() -> None:
    jobs = [waiting("urgent", 2, "gpu"), waiting("warm", 1, "gpu", warm=True, priority=2)]
    assert started(jobs)[0] == "urgent"


def test_jobs_that_would_only_wait_for_an_exclusive_endpoint_leave_slots_to_others() -> None:
    jobs = [waiting("gpu-1", 1, "gpu"), waiting("gpu-2", 2, "gpu"), waiting("gpu-3", 3, "gpu"), waiting("api", 4)]
    assert started(jobs) == ["gpu-1", "api", "gpu-2", "gpu-3"]
    assert started(jobs, busy={"gpu": 3}) == ["api", "gpu-1", "gpu-2", "gpu-3"]


def test_a_job_more_urgent_than_the_one_on_an_exclusive_endpoint_keeps_its_place() -> None:
    jobs = [waiting("urgent", 1, "gpu"), waiting("api", 2)]
    assert started(jobs, busy={"gpu": 2}) == ["urgent", "api"]


def exclusive(*jobs: Active) -> str:
    ((job, _), *others) = choose(jobs, capacity=100, evaluators=1, exclusive=True, patience_s=600)
    assert {other for other, _ in others} <= {job}
    return job


def test_an_exclusive_endpoint_runs_the_job_whose_model_is_resident_before_an_older_one() -> None:
    cold, warm = active("cold", since=1), active("warm", since=2)
    warm.warm = True
    assert exclusive(cold, warm) == "warm"


def test_a_job_under_way_is_not_left_for_one_whose_model_is_still_told_as_resident() -> None:
    begun, warm = active("begun", since=2, flying=10), active("warm", since=1)
    warm.warm = True
    assert exclusive(begun, warm) == "begun"


def test_an_exclusive_endpoint_turns_to_the_user_whose_turn_is_the_longest_ago() -> None:
    again, first = active("again", "a", since=1), active("first", "b", since=2)
    again.warm, again.owner_served_at = True, 50
    assert exclusive(again, first) == "first"


def test_an_exclusive_endpoint_ends_a_job_before_it_turns_to_another_user() -> None:
    half, first = active("half", "a", since=1), active("first", "b", since=2)
    half.served, half.owner_served_at = True, 50
    assert exclusive(half, first) == "half"


def test_an_interrupted_job_goes_on_before_an_exclusive_endpoint_turns_to_another_user() -> None:
    half, first = active("half", "a", since=1), active("first", "b", since=2)
    half.begun, half.owner_served_at, first.warm = True, 50, True
    assert exclusive(half, first) == "half"


def test_a_job_held_back_for_the_patience_runs_before_all_that_were_held_shorter() -> None:
    held, warm = active("held", since=1), active("warm", since=2, flying=10)
    held.held_s, warm.held_s, warm.warm = 600, 599, True
    assert exclusive(held, warm) == "held"


def test_among_jobs_held_for_long_the_resident_model_counts_no_more() -> None:
    held, warm = active("held", since=1), active("warm", since=2)
    held.held_s, warm.held_s, warm.warm = 700, 650, True
    assert exclusive(held, warm) == "held"


def test_a_more_urgent_job_takes_an_exclusive_endpoint_whatever_is_resident() -> None:
    urgent, warm = active("urgent", priority=3, since=2), active("warm", priority=2, since=1, flying=10)
    warm.warm = True
    assert exclusive(urgent, warm) == "urgent"


def test_no_job_starves_on_an_exclusive_endpoint_under_an_endless_stream_of_warm_ones() -> None:
    cold = active("cold", since=0)
    for now in range(0, 3000, 30):
        warm = active(f"warm-{now}", since=now)
        cold.held_s, warm.held_s, warm.warm = now, 0, True
        if exclusive(cold, warm) == "cold":
            assert now == 600
            return
    raise AssertionError("the cold job never ran")


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
