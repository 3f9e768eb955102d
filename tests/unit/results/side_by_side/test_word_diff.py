"""How texts differ, word by word."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.results.side_by_side.word_diff import ADDED, MOST_WORDS, REMOVED, SAME, word_diff
from tests.growth import is_about_linear

TEXTS = st.text(alphabet="ab é\n\t", max_size=40) | st.text(max_size=40)
MARKS = {SAME: " ", REMOVED: "-", ADDED: "+"}


def marked(before: str, after: str) -> list[str]:
    return [MARKS[part.kind] + part.text for part in word_diff(before, after).parts]


@given(TEXTS, TEXTS)
def test_parts_rebuild_both_texts(before: str, after: str) -> None:
    parts = word_diff(before, after).parts
    assert "".join(part.text for part in parts if part.kind != ADDED) == before
    assert "".join(part.text for part in parts if part.kind != REMOVED) == after
    assert all(part.text for part in parts)
    assert all(one.kind != other.kind for one, other in pairwise(parts))


@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_as_many_words_stay_as_can(before: list[str], after: list[str]) -> None:
    parts = word_diff(" ".join(before), " ".join(after)).parts
    stay = sum(len(part.text.split()) for part in parts if part.kind == SAME)
    assert stay == longest_common(before, after)


def longest_common(one: list[str], other: list[str]) -> int:
    """By the textbook's table."""
    row = [0] * (len(other) + 1)
    for word in one:
        above = row
        row = [0]
        for place, there in enumerate(other):
            row.append(above[place] + 1 if word == there else max(above[place + 1], row[-1]))
    return row[-1]


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("the cat sat", "the dog sat", [" the ", "-cat ", "+dog ", " sat"]),
        ("the cat", "the cat sat on", [" the cat", "+ sat on"]),
        ("a b", "a\nb", [" a", "- ", "+\n", " b"]),
        ("", "new words", ["+new words"]),
        ("gone", "", ["-gone"]),
        ("same", "same", [" same"]),
        ("", "", []),
    ],
)
def test_a_change_tells_what_went_before_what_came(before: str, after: str, parts: list[str]) -> None:
    assert marked(before, after) == parts


def test_beyond_the_most_words_only_what_begins_and_ends_alike_stays() -> None:
    middle = [f"w{number}" for number in range(MOST_WORDS + 1)]
    before, after = " ".join(["a", *middle, "z"]), " ".join(["a", *reversed(middle), "z"])
    assert [MARKS[part.kind] for part in word_diff(before, after).parts] == [" ", "-", "+", " "]
    assert word_diff(before, before).parts[0].text == before


@pytest.mark.parametrize("words", [1, 2, 60, 10**6])
def test_texts_of_4000_words_take_linear_time_whatever_they_say(words: int) -> None:
    """difflib takes minutes for two words at random."""
    chance = random.Random(words)

    def compare(size: int) -> None:
        before, after = (" ".join(str(chance.randrange(words)) for _ in range(size)) + str(end) for end in "xy")
        word_diff("x " + before, "y " + after)

    assert is_about_linear(compare, MOST_WORDS)
