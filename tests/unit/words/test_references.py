"""Which rows are a group."""

from __future__ import annotations

from typing import Any

import pytest

from services.json_values import NOTHING
from services.words.references import group, numbered


@pytest.mark.parametrize("value", [NOTHING, None, "", " \n"])
def test_rows_without_a_value_are_in_no_group(value: Any) -> None:
    assert group(value) == ""


@pytest.mark.parametrize(
    ("value", "called"),
    [
        ("p1", "p1"),
        (" p1", " p1"),
        (7, "7"),
        (7.0, "7"),
        ("7", "7"),
        (0, "0"),
        (0.5, "0.5"),
        (True, "true"),
        ([], "[]"),
        ({"b": [1, None], "a": 2.0}, '{"a":2,"b":[1,null]}'),
        (10**400, "1" + "0" * 59 + "… "),
    ],
)
def test_equal_values_have_one_group(value: Any, called: str) -> None:
    assert group(value).startswith(called)
    assert called.endswith("… ") or group(value) == called


def test_a_whole_passage_has_a_short_name_that_tells_it_from_others() -> None:
    passage = "It was a dark and stormy night. " * 2_000
    names = {group(passage), group(passage + "x"), group(passage + "y")}
    assert len(names) == 3
    assert {len(each) for each in names} == {94}
    assert group("x" * 120) == "x" * 120


def test_groups_have_numbers_where_there_are_any() -> None:
    assert list(numbered(["a", "", "b", "a", ""])) == [0, 1, 2, 0, 3]
    assert list(numbered(["a", "a"])) == [0, 0]
    assert not numbered(["a", "", "b", ""])
    assert not numbered([])
