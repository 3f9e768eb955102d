"""A mirror with one split."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.evaluator.hub_import.made import LINES


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "ours/lamps/default"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_bytes(LINES)
    return tmp_path
