"""Numbers and texts that are answers of their own."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.reading.text import TextKind
from tests.growth import is_about_linear
from tests.parts import NIGHTLY

STRICT = AnswerReader(["Question"], Layer.STRICT)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("She has 3 + 4 = 7.\nAnswer: 7", "7"),
        ("Answer: 7 apples", "7"),
        ("Answer: $1,234.50", "1234.5"),
        ("**Answer:** 18.", "18"),
        ("Answer: $\\boxed{42}$", "42"),
        ("Answer: -3", "-3"),
        ("Answer: 3\nNo, 4.\nAnswer: 4", "4"),
        ("The answer is 12.", "12"),
        ("42", "42"),
        ("Answer: 5\n\nQuestion: and then?\nAnswer: 6", "5"),
        ("Answer: \\(12\\)", "12"),
        ("Answer: \\[\\boxed{12}\\]", "12"),
        ("Answer: $1{,}234$", "1234"),
        ("Answer: \\$1\\,234", "1234"),
        ("Answer: 1\u202f234", "1234"),
        ("Answer: 18\n- 5 of them are red", "18"),
        ("Answer: 18 - that is all", "18"),
        ("Answer: seven", "7"),
        ("Answer: one hundred and two", "102"),
        ("Answer: 3/4", "0.75"),
        ("Answer: 1/3", "1/3"),
        ("Answer: 2 1/2", "2.5"),
        ("Answer: 18½", "18.5"),
        ("Answer: 1.234,50", "1234.5"),
        ("Answer: 1e3", "1000"),
        ("Answer: 1.8 billion", "1800000000"),
        ("Answer: 1 234", "1234"),
        ("Answer: 9 * 2 = 18", "18"),
        ("Answer: 20-2=18", "18"),
        ("Answer: x = 18", "18"),
        ("Answer: ~18", "18"),
        ("Answer: 18 dollars", "18"),
    ],
)
def test_number_after_the_marker_is_the_answer(text: str, number: str) -> None:
    assert STRICT(text, NumberKind()).answer == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((".5", "0.5"), ("-.5", "-0.5"), ("−.5", "-0.5"), ("+.5", "0.5"), ("$.50", "0.5"), ("-$.50", "-0.5")),
        *((".5.", "0.5"), ("**.5**.", "0.5"), ("5.", "5"), ("**5**.", "5"), ("$1,234.50.", "1234.5")),
        *(("Answer: .5", "0.5"), ("Answer: -.5", "-0.5"), ("Answer: −.5 degrees", "-0.5"), ("Answer: $.50", "0.5")),
        *(("Answer: €.50", "0.5"), ("Answer: $\\boxed{.5}$", "0.5"), ("Answer: .5%", "0.5"), ("Answer: 5%", "5")),
        *(("The answer is .5.", "0.5"), ("The answer is 5.", "5"), ("Answer: 3\nNo.\nAnswer: .5", "0.5")),
        *(("...5", ""), (". 5", ""), ("Answer: ..5", ""), ("Answer: .1.2", ""), ("Answer: .5e3", "500")),
        *(
            ("Answer: .", ""),
            ("Answer: .1,234", ""),
            ("Answer: 3 or .5", ""),
            ("Answer: .5 or 3", ""),
            ("Answer: 9 * .5 = 4.5", "4.5"),
        ),
    ],
)
def test_a_point_before_the_first_digit_is_a_decimal_point(text: str, number: str) -> None:
    assert STRICT(text, NumberKind()).answer == number


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", layers.NO_MARKER),
        ("It makes 7 in all.", layers.NO_MARKER),
        ("Answer: <number>", layers.NO_LABEL),
        ("Answer: 3 or 4", layers.AMBIGUOUS),
        ("Answer: 1.2.3", layers.NO_LABEL),
        ("Answer: 12,34", layers.NO_LABEL),
        ("Answer: 9 \\times 2", layers.AMBIGUOUS),
        ("Answer: 12^2", layers.AMBIGUOUS),
        ("Answer: 5:30", layers.AMBIGUOUS),
        ("Answer: 3 kg 250 g", layers.AMBIGUOUS),
        ("Answer: 10-12", layers.AMBIGUOUS),
    ],
)
def test_other_numbers_are_no_answer(text: str, how: str) -> None:
    found = STRICT(text, NumberKind())
    assert (found.answer, found.how) == ("", how)


def test_number_or_text_at_the_cut_may_lack_its_end_and_does_not_count() -> None:
    assert STRICT("Answer: 1", NumberKind(cut=True)).answer == ""
    assert STRICT("Answer: 1\nThat is", NumberKind(cut=True)).answer == "1"
    assert STRICT("Answer: apple an", TextKind(cut=True)).answer == ""
    assert STRICT("Answer: apple and pear\nThat", TextKind(cut=True)).answer == "apple and pear"


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1,",
        "answer: 1",
        "answer: ",
        "answer:",
        "\n",
        " ",
        "1.",
        "-",
        "$",
        "<",
        '"',
        ".",
        "answer: .",
        ".5 ",
        "It is 5. ",
        "so 5 and since a, ",
    ],
)
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    def read(size: int) -> None:
        text = unit * (size // len(unit))
        AnswerReader()(text, NumberKind())
        AnswerReader()(text, TextKind())

    assert is_about_linear(read, 1 << (17 if NIGHTLY else 16))
