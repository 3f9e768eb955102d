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
