"""Numbers have one form."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.numerals.forms import canonical_number


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
