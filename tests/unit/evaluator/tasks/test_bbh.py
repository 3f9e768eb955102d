"""BBH's answers are compared by what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluator.items.task import Item, Response
from tests.unit.evaluator.tasks.tasks import items, made


def test_bbh_option_is_named_by_its_letter_or_its_text(tmp_path: Path) -> None:
    task = made(tmp_path, "bbh/snarks")
    for item in items(task):
        (letter,) = item.answers
        bracketed, text = f"({letter})", item.fields[letter]
        for answer in (bracketed, letter, f"{letter.lower()})", f"{letter}.", f"{bracketed} {text}", text, f"{text}."):
            assert task.score(item, Response(f"Answer: {answer}")).statistics["correct"] == 1, answer
        other = "B" if letter == "A" else "A"
        for answer in (f"({other})", other, f"({other}) {text}", f"{letter}nother one", "Z"):
            assert task.score(item, Response(f"Answer: {answer}")).statistics["correct"] == 0, answer


@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        ("dyck_languages", [") } ]", ")}]"], ["} ) ]", ") }"]),
        ("word_sorting", ["anvil kettle", "Anvil, kettle.", "anvil  kettle"], ["kettle anvil", "anvil"]),
        ("multistep_arithmetic_two", ["-8", "-8.0", "−8"], ["8", "-80"]),
        ("boolean_expressions", ["True", "true"], ["False"]),
    ],
)
def test_bbh_answers_are_compared_by_what_they_mean(
    tmp_path: Path, task: str, right: list[str], wrong: list[str]
) -> None:
    made_task = made(tmp_path, f"bbh/{task}")
    reference = {"dyck_languages": ") } ]", "word_sorting": "anvil kettle", "boolean_expressions": "True"}.get(
        task, "-8"
    )
    item = next(iter(items(made_task)))
    item = Item(0, item.messages, reference, "", "", fields=item.fields, answers=(reference,))
    for answers, expected in ((right, 1.0), (wrong, 0.0)):
        for answer in answers:
            scored = made_task.score(item, Response(f"First this, then that.\nAnswer: {answer}"))
            assert scored.statistics["correct"] == expected, answer
