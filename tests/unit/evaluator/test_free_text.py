"""Numbers and texts that are answers of their own."""

from __future__ import annotations

import time

import pytest

from services.evaluator.answers import scoring
from services.evaluator.answers.free_text import FinalNumberExtractor, TextExtractor, canonical_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", "1234"),
        ("$1,234.50", "1234.5"),
        ("-3.0", "-3"),
        ("−7", "-7"),
        ("0.10", "0.1"),
        ("1000000000000000000000", "1000000000000000000000"),
        ("-0", "0"),
        ("-$.50", "-0.5"),
        ("seven", ""),
        ("", ""),
        ("NaN", ""),
    ],
)
def test_numbers_have_one_form(text: str, number: str) -> None:
    assert canonical_number(text) == number


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
    ],
)
def test_number_after_the_marker_is_the_answer(text: str, number: str) -> None:
    assert FinalNumberExtractor(["Question"])(text).answer == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((".5", "0.5"), ("-.5", "-0.5"), ("−.5", "-0.5"), ("+.5", "0.5"), ("$.50", "0.5"), ("-$.50", "-0.5")),
        *((".5.", "0.5"), ("**.5**.", "0.5"), ("5.", "5"), ("**5**.", "5"), ("$1,234.50.", "1234.5")),
        *(("Answer: .5", "0.5"), ("Answer: -.5", "-0.5"), ("Answer: −.5 degrees", "-0.5"), ("Answer: $.50", "0.5")),
        *(("Answer: €.50", "0.5"), ("Answer: $\\boxed{.5}$", "0.5"), ("Answer: .5%", "0.5"), ("Answer: 5%", "5")),
        *(("The answer is .5.", "0.5"), ("The answer is 5.", "5"), ("Answer: 3\nNo.\nAnswer: .5", "0.5")),
        *(("...5", ""), (". 5", ""), ("Answer: ..5", ""), ("Answer: .1.2", ""), ("Answer: .5e3", "")),
        *(
            ("Answer: .", ""),
            ("Answer: .1,234", ""),
            ("Answer: 3 or .5", ""),
            ("Answer: .5 or 3", ""),
            ("Answer: 9 * .5 = 4.5", ""),
        ),
    ],
)
def test_a_point_before_the_first_digit_is_a_decimal_point(text: str, number: str) -> None:
    assert FinalNumberExtractor()(text).answer == number


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", scoring.NO_MARKER),
        ("It makes 7 in all.", scoring.NO_MARKER),
        ("Answer: seven", scoring.NO_LABEL),
        ("Answer: <number>", scoring.NO_LABEL),
        ("Answer: 3 or 4", scoring.AMBIGUOUS),
        ("Answer: 3/4", scoring.AMBIGUOUS),
        ("Answer: 1.2.3", scoring.NO_LABEL),
        ("Answer: 12,34", scoring.NO_LABEL),
        ("Answer: 1.234,50", scoring.NO_LABEL),
        ("Answer: 1e3", scoring.NO_LABEL),
        ("Answer: 9 * 2 = 18", scoring.AMBIGUOUS),
        ("Answer: 20-2=18", scoring.AMBIGUOUS),
        ("Answer: 9 \\times 2", scoring.AMBIGUOUS),
        ("Answer: 12^2", scoring.AMBIGUOUS),
        ("Answer: 2 1/2", scoring.AMBIGUOUS),
        ("Answer: 1 234", scoring.AMBIGUOUS),
        ("Answer: 5:30", scoring.AMBIGUOUS),
    ],
)
def test_other_numbers_are_no_answer(text: str, how: str) -> None:
    found = FinalNumberExtractor()(text)
    assert (found.answer, found.how) == ("", how)


def test_number_or_text_at_the_cut_may_lack_its_end_and_does_not_count() -> None:
    assert FinalNumberExtractor()("Answer: 1", cut=True).answer == ""
    assert FinalNumberExtractor()("Answer: 1\nThat is", cut=True).answer == "1"
    assert TextExtractor()("Answer: apple an", cut=True).answer == ""
    assert TextExtractor()("Answer: apple and pear\nThat", cut=True).answer == "apple and pear"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: anvil kettle violin", "anvil kettle violin"),
        ("**Answer:** `] ) }`", "] ) }"),
        ("Answer: (B)", "(B)"),
        ('Answer: "the Society".', "the Society"),
        ("Answer:\n\nGorän", "Gorän"),
        ("Answer: one\nAnswer: two", "two"),
        ("Answer: $\\boxed{(B)}$.", "(B)"),
        ("Answer: \\(\\boxed{\\text{(B)}}\\)", "(B)"),
        ("Answer: <text>", ""),
        ("Answer:", ""),
        ("the Society", ""),
    ],
)
def test_rest_of_the_line_after_the_marker_is_the_answer(text: str, answer: str) -> None:
    assert TextExtractor(["Question"])(text).answer == answer


@pytest.mark.parametrize(
    "unit",
    ["1", "1,", "answer: 1", "answer: ", "answer:", "\n", " ", "1.", "-", "$", "<", '"', ".", "answer: .", ".5 "],
)
def test_hostile_megabyte_is_read_within_two_seconds(unit: str) -> None:
    text = unit * ((1 << 20) // len(unit))
    started = time.process_time()
    FinalNumberExtractor()(text)
    TextExtractor()(text)
    assert time.process_time() - started < 2.0
