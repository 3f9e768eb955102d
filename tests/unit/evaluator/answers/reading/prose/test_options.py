"""Lists and tables that go through the options."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.prose.options import the_right_one, verdict
from services.evaluator.answers.reading.reader import AnswerReader

BIRDS = {"A": "ostrich", "B": "swift", "C": "penguin"}


@pytest.mark.parametrize(
    "text",
    [
        "A. False – it runs.\nB. True – it flies.\nC. False – it swims.",
        "A) ostrich: no, it runs\nB) swift: yes, it flies\nC) penguin: no, it swims",
        "**A) Ostrich** – Incorrect. It runs.\n\n**B) Swift** – Correct. It flies.\n\n**C) Penguin** – Incorrect.",
        "- A (ostrich): wrong\n- B (swift): right\n- C (penguin): wrong",
        "| Option | Bird | Flies? |\n|---|---|---|\n| A | ostrich | No |\n| B | swift | Yes |\n| C | penguin | No |",
        "A. ostrich (not correct)\nB. swift (correct)\nC. penguin (not correct)",
        "A: It cannot fly. Incorrect.\nB: This is correct.",
    ],
)
def test_the_only_option_that_is_called_right_is_the_answer(text: str) -> None:
    assert AnswerReader()(text, LetterKind(3, BIRDS)).answer == "B"


@pytest.mark.parametrize(
    "text",
    [
        "A. True – it has wings.\nB. True – it flies.\nC. False – it swims.",
        "A. True – it has wings.\nB. False – it flies.",
        "A. ostrich\nB. swift\nC. penguin",
        "A (ostrich): it runs.\nB (swift): it flies.\nC (penguin): it swims.",
    ],
)
def test_a_list_without_one_right_option_is_no_answer(text: str) -> None:
    assert AnswerReader()(text, LetterKind(3, BIRDS)).answer == ""


def test_a_list_of_options_that_are_verdicts_themselves_says_nothing() -> None:
    assert AnswerReader()("A. True\nB. False", LetterKind(2, {"A": "True", "B": "False"})).answer == ""


def test_verdicts() -> None:
    assert verdict(" ✓") is verdict(": correct, as it flies") is verdict(" swift – yes.") is True
    assert verdict(" incorrect") is verdict(": not correct.") is verdict(" ostrich | No |") is False
    assert verdict(" the right wing is broken") is verdict("") is None
    assert the_right_one({"A": False, "B": True}, 4) == "B"
    assert the_right_one({"A": True, "B": False}, 4) == the_right_one({"A": True}, 1) == ""
