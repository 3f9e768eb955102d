"""Ids, found again with their lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.results.datasets.reading.tally import CustomIds


@given(st.lists(st.text(max_size=3), max_size=300))
def test_ids_are_found_again_with_their_lines(ids: list[str]) -> None:
    known, lines = CustomIds(), dict[str, int]()
    for line, custom_id in enumerate((each.encode("utf-8", "replace").decode() for each in ids), start=1):
        assert known.add(custom_id, line) == lines.get(custom_id, 0)
        lines.setdefault(custom_id, line)


def test_a_hundred_thousand_ids_are_told_apart() -> None:
    known = CustomIds()

    assert not any(known.add(f"id-{i}", i + 1) for i in range(100_000))
    assert [known.add(f"id-{i}", 1_000_000) for i in range(0, 100_000, 9_999)] == list(range(1, 100_001, 9_999))
