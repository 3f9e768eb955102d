"""YAML as a value: what is read as JavaScript would read it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.chat_requests import yaml_document
from services.chat_requests.faults import RefusedError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: no\nb: 12:30\nc: 007\nd: 2026-04-27", {"a": "no", "b": "12:30", "c": "007", "d": "2026-04-27"}),
        ("a: 0.5\nb: true\nc: ~\nd: [1, x]", {"a": 0.5, "b": True, "c": None, "d": [1, "x"]}),
        ("1: a", {"1": "a"}),
    ],
)
def test_scalars_are_those_of_json(text: str, value: Any) -> None:
    assert yaml_document.parse(text.encode()) == value


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: &x [1]\nb: *x", 'Line 2 has a YAML alias, "x". Write out its value.'),
        (b"a: 1\na: 2", 'The name "a" occurs twice in one map, on lines 1 and 2. Keep one of them.'),
        (b"a: {b: 1, 1: 2, '1': 3}", 'The name "1" occurs twice in one map, on line 1. Keep one of them.'),
        (b"a: [1", "The file is not valid YAML on line "),
        (b"a: .inf", "The value "),
        (b"a: !!python/object:os.system x", "The file is not valid YAML on line 1: "),
        (b"a: \xff", "UTF-8"),
        (b"a: \0", "The file contains NUL bytes."),
        (b"[" * 500, "The file nests more than "),
    ],
)
def test_what_json_does_not_have_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(RefusedError) as caught:
        yaml_document.parse(data)
    assert said in caught.value.reason


def test_a_caller_may_end_the_reading() -> None:
    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        yaml_document.parse(b"a: 1", stop)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
        | st.sampled_from(["no", "1e5", "0o17", "0x1F", "12:30", "1_000", ".5", "+.inf", "<<", "=", "~", "a\n b\n\n"]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab1:\n ", max_size=3), inner, max_size=4),
        max_leaves=8,
    )
)
def test_what_is_written_is_read_as_the_same_value(value: Any) -> None:
    text = yaml_document.written(value)
    assert json.dumps(yaml_document.parse(text.encode())) == json.dumps(value)
    assert yaml_document.written(yaml_document.parse(text.encode())) == text


def test_texts_of_several_lines_are_blocks() -> None:
    assert yaml_document.written({"a": "It is {{time}}.\n{{tasks}}\n"}) == "a: |\n  It is {{time}}.\n  {{tasks}}\n"
