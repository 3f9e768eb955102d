"""The random order of decisions and its units."""

from __future__ import annotations

from services import decision_order
from services.scheduler.jobs.units import DecisionLayout
from touchstone.v1 import job_pb2


def plan(*sizes: int) -> list[job_pb2.TaskPlan]:
    return [job_pb2.TaskPlan(task=f"t{place}", items=size, unit_size=50) for place, size in enumerate(sizes)]


def test_the_order_stays_the_same_in_every_version() -> None:
    assert decision_order.order(plan(5, 2), 7) == [(0, 1), (0, 0), (1, 0), (0, 4), (0, 2), (0, 3), (1, 1)]


def test_every_item_is_in_one_unit_and_units_follow_the_order() -> None:
    tasks = plan(100, 7, 301)
    units = decision_order.units(tasks, 1)
    assert sorted((unit.task, place) for unit in units for place in unit.positions) == [
        (task, place) for task, size in enumerate((100, 7, 301)) for place in range(size)
    ]
    assert max(len(unit.positions) for unit in units) <= decision_order.UNIT
    places = {item: place for place, item in enumerate(decision_order.order(tasks, 1))}
    # Nothing is asked much earlier than its place in the order says.
    asked = 0
    for unit in units:
        assert all(abs(places[unit.task, position] - asked) < 4 * decision_order.UNIT for position in unit.positions)
        asked += len(unit.positions)


def test_little_of_many_tasks_is_asked_beyond_a_place_in_the_order() -> None:
    tasks = plan(*[250] * 57)
    units = decision_order.units(tasks, 1)
    places = {item: place for place, item in enumerate(decision_order.order(tasks, 1))}
    assert sum(len(unit.positions) for unit in units) == len(places) == 57 * 250
    asked = 0
    for unit in units:
        # All units up to the one of a place have been asked when its answer is looked at.
        first = min(places[unit.task, position] for position in unit.positions)
        asked += len(unit.positions)
        assert asked - first <= max(64, first / 15)
    # Later units are not small.
    late = units[len(units) // 2 :]
    assert sum(len(unit.positions) for unit in late) >= 5 * len(late)


def test_items_of_a_cluster_follow_each_other_and_clusters_are_in_random_order() -> None:
    tasks = plan(40, 6)
    tasks[0].clusters.extend([0, 0, 0, 1, 2, 2, *range(3, 35), 1, 1])
    order = decision_order.order(tasks, 7)
    assert sorted(order) == sorted(decision_order.order(plan(40, 6), 7))
    places = {item: place for place, item in enumerate(order)}
    for together in ((0, 1, 2), (3, 38, 39), (4, 5)):
        first = places[0, together[0]]
        assert [places[0, position] for position in together] == list(range(first, first + len(together)))
    # Each cluster is where its first item would be by itself.
    alone = [item for item in decision_order.order(plan(40, 6), 7) if item not in {(0, p) for p in (1, 2, 5, 38, 39)}]
    assert [item for item in order if item in set(alone)] == alone
    units = decision_order.units(tasks, 7)
    assert sorted((unit.task, position) for unit in units for position in unit.positions) == sorted(order)


def test_another_seed_gives_another_order_with_the_same_items() -> None:
    first, second = (decision_order.order(plan(50), seed) for seed in (1, 2))
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_retry_runs_what_is_missing_of_each_unit() -> None:
    tasks = plan(20, 10)
    layout = DecisionLayout(tasks, 3)
    stored = [set(layout.positions(0)) | {layout.positions(1)[0]}, set[int]()]
    if layout.slice(0).task == 1 or layout.slice(1).task == 1:
        stored = [set[int](), set[int]()]
        stored[layout.slice(0).task] |= {*layout.positions(0)}
        stored[layout.slice(1).task] |= {layout.positions(1)[0]}
    missing = layout.missing(stored)
    assert 0 not in missing
    assert missing[1] == layout.positions(1)[1:]
    assert all(missing[unit] == () for unit in range(2, layout.units))
    assert sum(layout.slice(unit).size for unit in range(layout.units)) == layout.items == 30
