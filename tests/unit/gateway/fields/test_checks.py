"""Numbers of a request are checked."""

from __future__ import annotations

import pytest

from services import errors
from services.gateway.fields.checks import parse, record
from services.gateway.fields.job import custom_problems, parameter_problems


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_numbers_beyond_a_float_are_refused_with_their_place(number: int) -> None:
    assert parameter_problems({"temperature": number, "seed": number}, "params")
    assert custom_problems({"a": [number]}, "custom") == [("custom", "custom contains a number that is too large.")]
    with pytest.raises(errors.InvalidRequestError, match="too large"):
        parse(f'{{"seed": {number}}}'.encode(), record({}))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "Expecting value at character 1. Send an object."),
        (b'{"a": 1', "at character 8"),
        (b'{"a": NaN}', "it contains NaN. Send a number or null."),
        (b'{"a": -Infinity}', "it contains -Infinity"),
        (b'{"a": "\xff"}', "byte 8 is not UTF-8"),
        (b'{"a": "\\ud800"}', r"half a character (\ud800). Remove it."),
        (b"[" * 10_000 + b"]" * 10_000, "nests too many objects and arrays. Make it flatter."),
    ],
)
def test_what_is_wrong_with_a_body_is_said(body: bytes, says: str) -> None:
    with pytest.raises(errors.InvalidRequestError) as caught:
        parse(body, record({}))
    assert says in caught.value.message


def test_a_mark_of_byte_order_is_no_part_of_a_body() -> None:
    assert parse(b"\xef\xbb\xbf{}", record({})) == {}
