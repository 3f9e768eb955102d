"""JSON Schemas of users, also hostile ones."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services import json_schemas, json_values

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "born": {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
    },
    "required": ["name", "born"],
    "additionalProperties": False,
}


def judged(schema: Any, value: Any) -> json_schemas.Judged:
    return json_schemas.compiled(json_schemas.written(schema)).judge(value)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "Ada", "born": {"year": 1815}}, None),
        ({"name": "Ada", "born": {"year": 1815}, "tags": ["a", "b"]}, None),
        ({"name": "", "born": {"year": 1815}}, {"name"}),
        ({"name": "Ada", "born": {}}, {"born"}),
        ({"born": {"year": "1815"}, "tags": ["a", "a"]}, {"name", "born", "tags"}),
        ({"name": "Ada", "born": {"year": 1815}, "more": 1}, set()),
        ([], {"name", "born", "tags"}),
        (None, {"name", "born", "tags"}),
    ],
)
def test_a_value_is_judged_as_a_whole_and_by_property(value: Any, wrong: set[str] | None) -> None:
    found = judged(PERSON, value)
    assert found.valid == (wrong is None) == (not found.why)
    assert {name for name, is_right in found.properties if not is_right} == (wrong or set())


def test_a_schema_may_refer_to_its_own_parts() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"type": "object", "properties": {"in": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
        },
    }
    assert judged(tree, {"in": [{"in": []}, {}]}) == json_schemas.Judged(True, (("in", True),))
    assert judged(tree, {"in": [{"in": [5]}]}).properties == (("in", False),)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "only references inside the schema work"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "only references inside the schema work"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "refers to '#/\\$defs/none', which is not in it"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, "refers to itself without end"),
        ({"type": "object", "not": {"$dynamicRef": "http://127.0.0.1:9/"}}, "only references inside the schema work"),
        ({"$schema": "http://127.0.0.1:9/own", "type": "object"}, r"unknown \$schema"),
        ({"pattern": "(a"}, "not a valid RE2 pattern"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "not a valid RE2 pattern"),
        ({"patternProperties": {"(a+)+\\1": {}}}, "not a valid RE2 pattern"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, "use additionalProperties instead"),
        ({"type": "text"}, "is not a valid JSON Schema: \\$.type: 'text' is not valid"),
        ({"multipleOf": 0}, "is not a valid JSON Schema"),
        ({"gas": "neon"}, "is not a JSON Schema: it has no keyword"),
        ([1], "is not a JSON Schema, which is an object"),
        ("{", "is not JSON"),
        ('{"type": NaN}', "has NaN"),
        ({"not": {"type": "object", "title": "x" * 70_000}}, "at most 65,536 are allowed"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_reason(schema: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        json_schemas.compiled(json_schemas.written(schema))


def nested(levels: int) -> Any:
    schema: Any = {"type": "array"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def doubling(levels: int) -> Any:
    parts: dict[str, Any] = {"d0": {"type": "integer"}}
    for level in range(1, levels):
        parts[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}, {"$ref": f"#/$defs/d{level - 1}"}]}
    return {"$defs": parts, "properties": {"a": {"$ref": f"#/$defs/d{levels - 1}"}}}


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        (doubling(40), {"a": "x"}, False),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 200_000 + "b"}, False),
        ({"patternProperties": {"^(a+)+$": {"type": "null"}}}, {"a" * 100_000 + "b": 1}, True),
        ({"items": {"enum": [f"x{i}" for i in range(5000)]}}, ["y"] * 50_000, False),
        ({"uniqueItems": True}, [{"a": i} for i in range(30_000)], True),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], False),
        ({"anyOf": [{"type": "string"}] * 1000}, ["x" * 900_000], False),
        ({"items": {"not": {"type": "integer"}}}, [0] * 400_000, False),
        ({"contains": {"type": "null"}}, [0] * 400_000, False),
        ({"multipleOf": 0.1}, int("9" * 4000), True),
        ({"unevaluatedProperties": False}, {f"k{i}": 1 for i in range(50_000)}, False),
        ({"propertyNames": {"maxLength": 1}}, {f"k{i}": 1 for i in range(50_000)}, False),
        ({"dependentRequired": {"a": [f"k{i}" for i in range(5000)]}}, {"a": 1}, False),
        (nested(90), json.loads("[" * 95 + "]" * 95), True),
        ({"items": {"$ref": "#"}}, json.loads("[" * 99 + "]" * 99), False),
    ],
)
def test_hostile_values_and_schemas_take_a_limited_time(schema: Any, value: Any, is_valid: bool) -> None:
    began = time.process_time()
    assert judged(schema, value).valid == is_valid
    assert time.process_time() - began < 8


@pytest.mark.stack
def test_the_work_on_a_value_is_the_same_each_time() -> None:
    found = {judged(doubling(40), {"a": "x"}) for _ in range(2)}
    assert found == {json_schemas.Judged(False, (("a", False),), "takes more than 200,000 steps to check")}


SIMPLE = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab"]) | st.floats(-2, 2)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.recursive(
    st.sampled_from(
        [
            *({"type": kind} for kind in ("string", "integer", "number", "object", "array", "null", "boolean")),
            *({"minLength": 1}, {"maximum": 1}, {"enum": ["a", 1, None]}, {"const": {"a": 1}}, {"pattern": "^a"}),
            *({"minItems": 1}, {"uniqueItems": True}, {"required": ["a"]}, {"maxProperties": 1}),
        ]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(lambda p: {"properties": p}),
        st.builds(lambda p, more: {"patternProperties": {"^[ab]": p}, "additionalProperties": more}, inner, inner),
        st.builds(lambda p: {"properties": {"a": p}, "additionalProperties": False}, inner),
        inner.map(lambda one: {"items": one}),
        inner.map(lambda one: {"not": one}),
        inner.map(lambda one: {"contains": one}),
        st.lists(inner, min_size=1, max_size=3).flatmap(
            lambda of: st.sampled_from(["allOf", "anyOf", "oneOf"]).map(lambda name: {name: of})
        ),
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_values_are_valid_as_the_package_itself_says(schema: dict[str, Any], value: Any) -> None:
    value = json_values.whole(value)
    assert judged(schema, value).valid == jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "clause"),
    [
        ({"$schema": []}, "has the unknown $schema"),
        ({"$schema": 5}, "has the unknown $schema"),
        ({"$schema": {"type": "object"}}, "has the unknown $schema"),
        ({"$id": 5, "type": "string"}, "is not a valid JSON Schema"),
        ({"$id": "http://[bad", "properties": {"a": {"$ref": "q"}}}, "has the $id 'http://[bad', which is not a URI"),
        ({"$ref": "http://[bad"}, "refers to"),
        ({"properties": {"a": {"$dynamicRef": "http://127.0.0.1:1/x"}}}, "refers to"),
        ({"properties": {"a": {"$dynamicRef": "#nothing"}}}, "refers to"),
        ({"properties": {"a": {"$ref": "#/default"}}, "default": {"$ref": "http://127.0.0.1:1/x"}}, "refers to"),
        # `#` is the inner schema here, which has no definitions.
        ({"properties": {"a": {"$id": "http://x/in", "$ref": "#/$defs/q"}}, "$defs": {"q": {}}}, "refers to"),
        ({"properties": {"a": {"$ref": "#/default"}}, "default": {"type": "nonsense"}}, "is not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/default"}}, "default": {"minimum": "x"}}, "is not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/default"}}, "default": 5}, "is not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/default"}}, "default": {"pattern": "(?=a)"}}, "has a pattern"),
        ('{"maximum": ' + "9" * 5000 + "}", "has a number of more than 4,300 digits"),
    ],
)
def test_what_would_fail_on_some_answer_is_refused_before_any(schema: Any, clause: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(clause)):
        json_schemas.compiled(json_schemas.written(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", "$ref": "#/definitions/q"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://x/y", "properties": {"a": True}},
        {"$id": "http://x/root.json", "properties": {"a": {"$ref": "item.json"}}, "$defs": {"q": {"$id": "item.json"}}},
        {"properties": {"a": {"$ref": "#q"}}, "$defs": {"q": {"$anchor": "q", "type": "integer"}}},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}, "x-notes": {"$id": 5}},
    ],
)
def test_schemas_may_refer_to_their_parts_by_each_draft(schema: Any) -> None:
    assert judged(schema | {"definitions": {"q": {"type": "object"}}}, {"a": 1}).valid


@pytest.mark.parametrize(
    ("step", "value", "is_multiple"),
    [(0.01, 19.99, True), (0.01, 0.30000000000000004, False), (0.1, 1e300, True), (3, 10**400, False), (2, 4.0, True)],
)
def test_multiples_are_those_of_the_decimals_as_written(step: float, value: float, is_multiple: bool) -> None:
    assert judged({"multipleOf": step}, value).valid == is_multiple
