"""JSON Schema of values that may be null, and of objects."""

from __future__ import annotations

import jsonschema_rs
import pytest

from services.gateway.fields.schema import COUNT, STRING, Schema, array, enum, null, pair, shape

NAMED = shape({"a": STRING}, name="Named")


@pytest.mark.parametrize("schema", [STRING, enum("a", "b"), array(COUNT), NAMED, null(STRING)])
def test_null_adds_null_and_nothing_else(schema: Schema) -> None:
    judge = jsonschema_rs.validator_for(null(schema))

    assert judge.is_valid(None)
    assert not judge.is_valid(1.5)
    assert not jsonschema_rs.validator_for(enum("a")).is_valid(None)


def test_a_pair_holds_two() -> None:
    judge = jsonschema_rs.validator_for(pair(COUNT))

    assert [judge.is_valid(value) for value in ([], [1], [1, 2], [1, 2, 3])] == [False, False, True, False]


def test_only_optional_members_may_be_absent() -> None:
    judge = jsonschema_rs.validator_for(shape({"a": STRING, "b": COUNT}, optional=("b",)))

    assert judge.is_valid({"a": ""})
    assert not judge.is_valid({"b": 1})
