"""Whole numbers in English words."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.numerals.forms import in_words


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("eighteen", "18"),
        ("Twenty-five dollars", "25"),
        ("one hundred and two", "102"),
        ("two thousand three hundred", "2300"),
        ("minus seven", "-7"),
        ("one million two thousand", "1002000"),
        ("three quarters", "0.75"),
    ],
)
def test_words_are_read_as_their_number(text: str, number: str) -> None:
    found = in_words(text)
    assert found is not None
    assert found[0] == number


@pytest.mark.parametrize(
    "text", ["none", "twenty thirty", "hundred", "five or six", "two thousand million", "one of them", "tension"]
)
def test_words_that_are_no_one_number_are_not_read(text: str) -> None:
    assert in_words(text) is None


def test_the_end_of_the_number_is_told() -> None:
    assert in_words("twenty-five dollars") == ("25", len("twenty-five"))
