"""Which number a sentence asserts. Sentences are as models write them at the end of a solution."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader


def read(sentence: str) -> str:
    return AnswerReader()(sentence, NumberKind()).answer


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("It takes her 15 minutes to walk 1 mile.", "15"),
        ("It takes him 15 minutes to walk 1 mile.", "15"),
        ("Mia ran 3 times as far as Leo, so she ran 12 miles.", "12"),
        ("She needs 12 eggs because the recipe is doubled, so she buys 2 cartons.", "2"),
        ("She had 12 eggs while Bob had 8, so together they have 20.", "20"),
        ("There are 12 eggs but since 3 broke, 9 are left.", "9"),
        ("310 / 20 = 15.5, and since he needs a whole day for the rest, it will take him 16 days.", "16"),
        ("The price dropped from $80 to $60, a decrease of 25%.", "25"),
        ("√50 = 5√2 ≈ 7.0711, which rounds to 7.1.", "7.1"),
        ("Das Rad kostet jetzt also 1.080 €.", "1080"),
        ("A cube has 6 faces, 12 edges and *8 vertices*.", "8"),
    ],
)
def test_a_sentence_asserts_what_it_concludes(sentence: str, number: str) -> None:
    assert read(sentence) == number


@pytest.mark.parametrize(
    "sentence",
    [
        "The train leaves at 4:45.",
        "The ratio is 3:4.",
        "So the chance is 1 in 6.",
        "First compute 12*4 = 48.",
        "A cube has 6 faces, 12 edges and 8 vertices.",
        "Karen gets $60 and Bill gets $40.",
    ],
)
def test_a_part_of_a_figure_or_of_a_solution_is_not_read(sentence: str) -> None:
    assert read(sentence) == ""
