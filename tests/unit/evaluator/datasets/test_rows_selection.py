"""Samples of rows."""

from __future__ import annotations

from services.evaluator.datasets.rows import item_set, sample


def test_samples_are_nested_and_fixed_by_their_seed() -> None:
    hundred, two_hundred = sample("rows", 5000, 100, 3), sample("rows", 5000, 200, 3)
    assert set(hundred) < set(two_hundred)
    assert list(hundred) == sorted(hundred)
    assert sample("rows", 5000, 100, 4) != hundred
    assert sample("rows", 100, 0, 3) == sample("rows", 100, 100, 3) == sample("rows", 100, 500, 3) == range(100)


def test_item_sets_differ_by_rows_and_by_scoring() -> None:
    sets = {
        item_set("d", 100, range(100), "s"),
        item_set("e", 100, range(100), "s"),
        item_set("d", 100, range(100), "t"),
        item_set("d", 100, [1, 5], "s"),
        item_set("d", 100, [1, 6], "s"),
    }
    assert len(sets) == 5
    assert item_set("d", 100, list(range(100)), "s") == item_set("d", 100, range(100), "s")
