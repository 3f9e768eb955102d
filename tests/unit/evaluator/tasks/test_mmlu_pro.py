"""MMLU-Pro asks as published."""

from __future__ import annotations

from pathlib import Path

from tests import suite_rows
from tests.unit.evaluator.tasks.tasks import items, made, rows


def test_mmlu_pro_examples_are_the_subjects_own_and_reason_before_they_answer(tmp_path: Path) -> None:
    task = made(tmp_path, "mmlu_pro/computer_science", shots=4)
    validation = suite_rows.rows("TIGER-Lab/MMLU-Pro", "default", "validation", 56)
    own = [row for row in validation if row["category"] == "computer science"]
    shown = items(task)[0].messages
    for place, row in enumerate(own):
        question, answer = shown[2 * place].content, shown[2 * place + 1].content
        assert row["question"].strip() in question
        assert "think step by step" not in answer
        assert "The answer is" not in answer
        assert answer == f"Only one is {row['options'][row['answer_index']]}.\nAnswer: {row['answer']}"


def test_mmlu_pro_offers_as_many_letters_as_options(tmp_path: Path) -> None:
    own = [row for row in rows("mmlu_pro/math") if row["category"] == "math"]
    for item, row in zip(items(made(tmp_path, "mmlu_pro/math")), own, strict=True):
        assert len(item.labels) == len(row["options"])
        assert item.reference == row["answer"]
