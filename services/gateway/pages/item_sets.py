"""The leaderboard's choice of item sets: runs are ranked together only on the same items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from touchstone.v1 import results_service_pb2

MOST_NAMED = 2
"""Tasks of a set that are named; more are counted."""


def choices(sets: Sequence[results_service_pb2.ItemSet]) -> list[tuple[str, str]]:
    """(item set, its words) for each, in the given order; sets that would read the same have their hash beside."""
    words = [_words(one, len({tuple(other.tasks) for other in sets}) > 1) for one in sets]
    seen = Counter(words)
    return [
        (one.item_set, text if seen[text] == 1 else f"{text}, {one.item_set[:6]}")
        for one, text in zip(sets, words, strict=True)
    ]


def _words(one: results_service_pb2.ItemSet, tasks_differ: bool) -> str:
    counted = f"{one.items:,} of {one.published_items:,}" if one.subset else f"all {one.items:,}"
    tasks = ""
    if tasks_differ and one.tasks:
        tasks = " and ".join(one.tasks) if len(one.tasks) <= MOST_NAMED else f"{len(one.tasks)} tasks"
    return ", ".join(filter(None, (counted, tasks, one.scoring, f"{one.configurations} ranked")))
