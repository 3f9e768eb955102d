"""Rows of ReCoRD."""

from __future__ import annotations

import json
from pathlib import Path

from services.evaluator.tasks.kinds.split_task import SplitTask
from tests.unit.evaluator.tasks.tasks import LOGLIKELIHOOD, items, made


def test_record_shows_each_entity_once_and_fills_the_statement_with_it(tmp_path: Path) -> None:
    for item in items(made(tmp_path, "superglue/record", LOGLIKELIHOOD)):
        assert len(set(item.labels)) == len(item.labels) == len(item.choices)
        for entity, choice in zip(item.labels, item.choices, strict=True):
            assert entity in choice
            assert "@placeholder" not in choice


def test_record_row_without_a_right_candidate_is_no_example_and_spoils_no_others(tmp_path: Path) -> None:
    task = made(tmp_path, "superglue/record", LOGLIKELIHOOD, shots=2)
    for split in ("train", "validation"):
        file = next(tmp_path.rglob(f"{split}.jsonl"))
        first, *others = file.read_text().splitlines()
        file.write_text("\n".join([json.dumps({**json.loads(first), "answers": ["Nobody"]}), *others]) + "\n")
    found = items(task)
    assert found[0].reference == "Nobody"
    assert len(found) == 56
    assert isinstance(task, SplitTask)
    assert 0 not in task.example_rows()
