"""Bad lines by reason: true counts, few reasons, little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from services.chat_requests.faults import quoted
from services.results.datasets.reading.tally import WrongLines

SAID = 'say "a" and "b" twice'


def grouped(*reasons: str) -> list[tuple[str, int, list[int]]]:
    wrong = WrongLines()
    for line, reason in enumerate(reasons, start=1):
        wrong.add(line, reason)
    assert sum(one.count for one in wrong.reasons()) + wrong.other_lines == wrong.total == len(reasons)
    return [(one.reason, one.count, list(one.lines)) for one in wrong.reasons()]


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ('The id "x" is on line 7. End.', 'The id "y" is on line 7. End.', 'The id "…" is on line 7. End.'),
        ("It has 1,024 bytes.", "It has 9 bytes.", "It has … bytes."),
        ("It is -1.5e-05, not 2.", "It is 0.25, not 2.", "It is …, not 2."),
        (f"No {quoted(SAID)} here.", f"No {quoted('b')} here.", 'No "…" here.'),
        (f"No {quoted('7')} in 4.", f"No {quoted('a 5')} in 4.", 'No "…" in 4.'),
        ('The role is "' + "a" * 2000, 'The role is "' + "b" * 2000, 'The role is "…"'),
    ],
)
def test_reasons_that_differ_in_values_are_one(first: str, second: str, shown: str) -> None:
    assert grouped(first, second, first) == [(shown, 3, [1, 2, 3])]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The line is not UTF-8.", "The line is not UTF."),
        ("It is not base64.", "It is not base32."),
        ('It has "a".', "It has 5."),
        ('"a" is missing.', '"a" is empty.'),
    ],
)
def test_other_reasons_stay_apart(first: str, second: str) -> None:
    assert grouped(first, second) == [(first, 1, [1]), (second, 1, [2])]


def test_the_most_frequent_reason_comes_first_with_its_first_lines() -> None:
    assert grouped("b.", *["a."] * 30) == [("a.", 30, list(range(2, 22))), ("b.", 1, [1])]


def test_lines_that_are_all_wrong_in_another_way_take_little_memory() -> None:
    wrong = WrongLines()
    tracemalloc.start()
    try:
        for line in range(1, 20_001):
            word = "".join("abcdefghij"[int(digit)] for digit in str(line))
            wrong.add(line, f"{word} " * 300)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    reasons = wrong.reasons()
    assert (len(reasons), {one.count for one in reasons}) == (100, {1})
    assert max(len(one.reason) for one in reasons) == 300
    assert (wrong.total, wrong.other_lines, len(wrong.first)) == (20_000, 19_900, 100)
    assert held < 1_000_000


@pytest.mark.parametrize(("first", "second"), [("(… is open", "(5 is open"), ("(5 is open", "(… is open")])
def test_a_mark_in_a_reason_is_no_value(first: str, second: str) -> None:
    assert grouped(first, second) == [(first, 1, [1]), (second, 1, [2])]
