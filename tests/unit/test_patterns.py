"""Patterns that users give."""

from __future__ import annotations

import pytest

from services.patterns import MOST_CHARACTERS, compiled


def test_a_pattern_searches_as_re2_does() -> None:
    assert compiled(r"(\d+)$").search("in 2026").group(1) == "2026"


def test_a_pattern_may_have_so_many_characters() -> None:
    compiled("a" * MOST_CHARACTERS)
    with pytest.raises(ValueError, match=r"^has 1,001 characters; at most 1,000 are allowed$"):
        compiled("a" * (MOST_CHARACTERS + 1))


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(a{1000}){1000}"])
def test_what_re2_does_not_take_is_refused_with_its_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a valid RE2 pattern \(.+\)$"):
        compiled(pattern)


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(ValueError, match=r"^is not valid text$"):
        compiled("\ud800")
