"""Which loaded tables stay in memory."""

from __future__ import annotations

from services.evaluator.data.shelf import Shelf


class Holder:
    def __init__(self) -> None:
        self.loaded = True

    def unload(self) -> None:
        self.loaded = False


def holders(count: int) -> list[Holder]:
    return [Holder() for _ in range(count)]


def test_the_tables_used_last_stay_loaded() -> None:
    shelf, (first, second, third) = Shelf(25), holders(3)
    shelf.used(first, 10)
    shelf.used(second, 10)
    shelf.used(first, 10)
    shelf.used(third, 10)
    assert [first.loaded, second.loaded, third.loaded] == [True, False, True]


def test_a_table_larger_than_the_shelf_stays_while_it_is_used() -> None:
    shelf, (large, small) = Shelf(25), holders(2)
    shelf.used(large, 100)
    assert large.loaded
    shelf.used(small, 10)
    assert not large.loaded
    assert small.loaded


def test_a_table_counts_once_however_often_it_is_used() -> None:
    shelf, (first, second) = Shelf(25), holders(2)
    for _ in range(10):
        shelf.used(first, 10)
        shelf.used(second, 10)
    assert first.loaded
    assert second.loaded
