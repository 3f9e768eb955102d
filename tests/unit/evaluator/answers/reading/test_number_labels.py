"""Numbers on a scale."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.number import NumberKind
from tests.unit.evaluator.answers.reading.strictly import strict


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Answer: 3.8", "3.8"),
        ("Answer: 4,5", "4.5"),
        ("Answer: 4.5/5", "4.5"),
        ("Answer: 4.5 out of 5", "4.5"),
        ("**Answer:** 5.0", "5"),
        ("Answer: 0", "0"),
        ("Answer: 2 (on a scale from 0 to 5)", "2"),
        ("From 0 to 5 I say 2.\nAnswer: 3\nNo.\nAnswer: 4.", "4"),
        ("3.8", "3.8"),
        ("**4.25**", "4.25"),
        ("3/5.", "3"),
        (".5", "0.5"),
        ("Answer: .5.", "0.5"),
        ("Answer: .5 out of 5", "0.5"),
        ("Answer: four", "4"),
        ("1.7999999999999998", "1.8"),
        ("Answer: 3\n\nSentence 1: a\nAnswer: 5", "3"),
    ],
)
def test_number_on_the_scale_is_the_answer(text: str, number: str) -> None:
    assert strict("Sentence 1")(text, NumberKind((0, 5))).answer == number


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Answer: 5.1", layers.OUT_OF_RANGE),
        ("Answer: -1", layers.OUT_OF_RANGE),
        ("Answer: 87", layers.OUT_OF_RANGE),
        ("Answer: 4/10", layers.AMBIGUOUS),
        ("Answer: 3-4", layers.AMBIGUOUS),
        ("Answer: 3 or 4", layers.AMBIGUOUS),
        ("Answer: 3, 4", layers.AMBIGUOUS),
        ("Answer: 4%", layers.NO_LABEL),
        ("Answer: 1.2.3", layers.NO_LABEL),
        ("Answer: ..5", layers.NO_LABEL),
        ("Answer: 3 or .5", layers.AMBIGUOUS),
        ("Answer: -.5", layers.OUT_OF_RANGE),
        ("..5", layers.NO_MARKER),
        ("I would say 4", layers.NO_MARKER),
        ("1 2", layers.NO_MARKER),
        ("", layers.NO_MARKER),
    ],
)
def test_other_numbers_are_no_answer(text: str, how: str) -> None:
    found = strict()(text, NumberKind((0, 5)))
    assert (found.answer, found.how) == ("", how)


def test_number_at_the_cut_may_lack_digits_and_does_not_count() -> None:
    assert strict()("Answer: 4", NumberKind((0, 5), cut=True)).answer == ""
    assert strict()("Answer: 4 ", NumberKind((0, 5))).answer == "4"
    assert strict()("Answer: 4.5\nThe two sentences", NumberKind((0, 5), cut=True)).answer == "4.5"
