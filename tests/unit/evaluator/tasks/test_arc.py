"""ARC's options have letters."""

from __future__ import annotations

from pathlib import Path

from tests.unit.evaluator.tasks.tasks import items, made, rows


def test_arc_options_numbered_1_to_4_are_lettered(tmp_path: Path) -> None:
    found = rows("arc/easy")
    assert any(row["answerKey"].isdigit() for row in found)
    for item, row in zip(items(made(tmp_path, "arc/easy")), found, strict=True):
        assert "ABCDE".index(item.reference) == row["choices"]["label"].index(row["answerKey"])
