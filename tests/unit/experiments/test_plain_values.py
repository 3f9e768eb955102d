"""What a definition may hold at all, however it was made."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.experiments import plain_values

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\0")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_values_of_json_are_plain(value: Any) -> None:
    assert not [*plain_values.faults(value)]
    assert json.loads(json.dumps(value)) == value


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        ({"a": {"b": ["x", "y\0"]}}, "a.b[1]", "a.b[1] contains the NUL character. Remove it."),
        ({"a": "\ud800"}, "a", "a contains half a character. Remove it."),
        ({"a\0": 1}, "", "A name in The definition contains the NUL character. Remove it."),
        ({"a": {1: 2}}, "a", "a has a name that is not a string. Put it in quotation marks."),
        ({"a": date(2026, 1, 1)}, "a", "a must be a string, a number, true, false, a list or an object."),
        ({"a": (1,)}, "a", "a must be a string, a number, true, false, a list or an object."),
        ({"a": [float("nan")]}, "a[0]", "a[0] must be a finite number."),
        ({"a": 10**400}, "a", "a is too large a number."),
        (b"x", "", "The definition must be a string, a number, true, false, a list or an object."),
        (
            "x" * (plain_values.MOST_CHARACTERS + 1),
            "",
            "The definition has more than 16,777,216 characters.",
        ),
    ],
)
def test_what_no_json_holds_is_refused_with_its_path(value: Any, path: str, says: str) -> None:
    wrong = next(plain_values.faults(value), None)
    assert wrong is not None
    assert wrong[0] == path
    assert wrong[1].startswith(says)


def test_everything_that_is_not_plain_is_named() -> None:
    value = {"a": [float("inf"), "\0", {"b": date(2026, 1, 1)}], "c": 10**400, "d": 1, "e": nested(40)}
    assert [path for path, _ in plain_values.faults(value)] == ["a[0]", "a[1]", "a[2].b", "c", "e" + "[0]" * 31]


def test_values_nest_up_to_a_depth() -> None:
    assert not [*plain_values.faults(nested(32))]
    wrong = next(plain_values.faults(nested(33)), None)
    assert wrong is not None
    assert wrong[1].endswith("nests more than 32 lists and objects. Make it flatter.")


def test_a_list_within_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    assert next(plain_values.faults(value), None)


def test_lists_that_are_repeated_without_end_are_refused_soon() -> None:
    """As the aliases of a short YAML file make them."""
    value: Any = ["ha"] * 10
    for _ in range(20):
        value = [value] * 10
    assert next(plain_values.faults({"scenarios": value}), None)


def test_long_names_do_not_make_long_paths() -> None:
    value: Any = "\0"
    for _ in range(20):
        value = {"x" * 10_000: value}
    wrong = next(plain_values.faults(value), None)
    assert wrong is not None
    assert len(wrong[0]) < 2_000
    assert len(wrong[1]) < 200
