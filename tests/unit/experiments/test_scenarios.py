"""The shipped scenarios are the same for ever, and any first ones are balanced."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.experiments import scenarios
from services.experiments.scenarios import MOST_SCENARIOS

FIRST_60 = "c77344932f902094e6a157b609de96e3f16d1284165b9a36e16807c57b60e9ee"
ALL_210 = "3004e3cdf90411950442eba245a49086286c2303179b95c0a958657d51d45ff1"


def test_the_set_never_changes() -> None:
    """Scores of any two days are comparable only on the same scenarios. Another set gets another name."""
    assert scenarios.digest(scenarios.tips()[:60]) == FIRST_60
    assert scenarios.digest(scenarios.tips()) == ALL_210


def test_every_combination_of_person_time_and_tasks_is_there_once() -> None:
    every = scenarios.tips()
    combinations = {(one.fields["persona"], one.fields["time_slot"], one.fields["tasks"]) for one in every}

    assert len(combinations) == len(every) == 7 * 6 * 5
    assert len({person for person, _, _ in combinations}) == 7
    assert len({time for _, time, _ in combinations}) == 6
    assert set(Counter((person, tasks) for person, _, tasks in combinations).values()) == {6}


@given(st.integers(1, 210))
def test_any_first_scenarios_are_balanced(count: int) -> None:
    first = scenarios.tips()[:count]
    for name, most in (("persona", 7), ("time_slot", 6)):
        counts = Counter(one.fields[name] for one in first)
        assert len(counts) == min(most, count)
        assert max(counts.values()) - (min(counts.values()) if len(counts) == most else 0) <= 1


def test_a_scenario_has_what_prompts_insert() -> None:
    first, last = scenarios.tips()[0], scenarios.tips()[-1]

    assert (first.scenario_id, last.scenario_id) == ("s-0001", "s-0210")
    assert list(first.row) == ["id", "persona", "about", "time_slot", "time", "tasks"]
    assert first.row["about"].startswith("Jonas, 21, studies biology")
    assert [task[:2] for task in first.row["tasks"].split("\n")] == ["- "] * 3
    assert all(2 <= one.fields["tasks"].count("\n") <= 3 for one in scenarios.tips())


def test_the_order_of_names_counts_in_the_digest() -> None:
    one, other = (scenarios.Scenario("a", {"o": value}) for value in ({"x": 1, "y": 2}, {"y": 2, "x": 1}))
    assert scenarios.digest([one]) != scenarios.digest([other])


def test_lines_are_rows() -> None:
    content = b'\xef\xbb\xbf{"who": "Ada"}\r\n\n  \n{"id": 7, "who": "B\xc3\xb6"}'
    assert scenarios.read_lines(content) == ([{"who": "Ada"}, {"id": 7, "who": "Bö"}], [])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": 1}\n{"a": 1', "Line 2: The line is not JSON"),
        (b'{"a": 1, "a": 2}', 'Line 1: The name "a" occurs twice'),
        (b'\n{"a": "\\u0000"}', "Line 2: A string contains the NUL character"),
        (b'{"a": NaN}', "Line 1: NaN is not JSON"),
        (b'{"a": "\xff"}', "Line 1: Byte 8 of the line, 0xFF, is not UTF-8"),
        (b"[" * 5000, "Line 1: The line nests more than 32"),
        (b'"' + b"x" * 3_000_000 + b'"', "Line 1: It has 3,000,002 bytes; at most 2,097,152 are allowed."),
        (b"{}\n" * (MOST_SCENARIOS + 1), "The file has more than 5,000 scenarios."),
    ],
)
def test_a_wrong_line_is_named(content: bytes, says: str) -> None:
    assert scenarios.read_lines(content)[1][0].startswith(says)


def test_every_wrong_line_is_named() -> None:
    rows, wrong = scenarios.read_lines(b'{"a": 1}\n{\n\n{"b": 2}\nx\n')
    assert rows == [{"a": 1}, {"b": 2}]
    assert [one.partition(":")[0] for one in wrong] == ["Line 2", "Line 5"]
    assert [one.endswith("Write each scenario as a JSON object on a line of its own.") for one in wrong] == [
        True,
        False,
    ]
    assert len(scenarios.read_lines(b"{\n" * 1000)[1]) == 100


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=10) | st.integers() | st.none()), max_size=5))
def test_written_rows_are_read_back(rows: list[dict[str, object]]) -> None:
    sendable = [row for row in rows if not any("\0" in text for text in map(str, (*row, *row.values())))]
    content = "\n".join(json.dumps(row, ensure_ascii=False) for row in sendable).encode()
    assert scenarios.read_lines(content) == (sendable, [])
