"""Scorers of JSON objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.evaluator.answers.scorers.choosing import scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.unit.evaluator.answers.scorers.scored import TEXTS, by_field, correct, statistics
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize(
    ("response", "share"),
    [
        ('{"name": "Ada", "born": {"year": 1815.0, "city": "London"}, "tags": ["a", 1]}', 1.0),
        ('Here:\n```json\n{"name": "Ada", "born": {"year": 1815}, "tags": ["a", 1], "more": 1}\n```\nDone.', 0.75),
        ('```\n{"name": "x"}\n```\nNo:\n```\n{"name": "Ada"}\n```', 0.25),
        ('It is {"name": "Ada", "tags": [1, "a"]}.', 0.25),
        ('<think>{"name": "Ada"}</think>{"name": "Bob"}', 0.0),
        ('{"name": "ada", "born": 1815}', 0.0),
        ("[]", 0.0),
        ("Ada", 0.0),
    ],
)
def test_json_counts_equal_fields(response: str, share: float) -> None:
    right = {"name": "Ada", "born": {"year": 1815, "city": "London"}, "tags": ["a", 1.0]}
    found = statistics(Scoring(scorer="json"), response, right)
    assert found == {"json_match": pytest.approx(share), "correct": float(share == 1)}


def test_json_fields_are_dotted_paths_which_may_hold_dots() -> None:
    right = {"a.b": {"c": 1}, "list": [{"x": True}], "left": None}
    fields = Scoring(scorer="json", fields=["a.b.c", "list.0.x", "absent"])
    assert statistics(fields, '{"a": {"b": {"c": 1}}, "list": [{"x": true}]}', right)["json_match"] == 1
    assert statistics(fields, '{"a.b": {"c": 2}, "list": [{"x": 1}]}', right)["json_match"] == 0
    assert statistics(Scoring(scorer="json", fields=["left"]), "{}", right)["json_match"] == 0
    with pytest.raises(ValueError, match="has none of the fields absent"):
        scorer(Scoring(scorer="json", fields=["absent"])).right(right)


def test_each_field_is_judged_by_its_name() -> None:
    right = {"name": "Ada", "born": {"year": 1815, "city": "London"}, "tags": []}
    found = by_field(Scoring(scorer="json"), Reply('{"name": "Ada", "born": {"year": "1815"}, "tags": []}'), right)
    assert found == {"name": 1, "born.year": 0, "born.city": 0, "tags": 1}
    some = Scoring(scorer="json", fields=["born.year", "tags"])
    assert by_field(some, Reply("no"), right) == {"born.year": 0, "tags": 0}
    best = by_field(some, Reply('{"born": {"year": 1}}'), {"born": {"year": 2}}, {"born": {"year": 1}, "tags": [1]})
    assert best == {"born.year": 1, "tags": 0}
    assert by_field(Scoring(scorer="json"), Reply("{}"), {}) == {}


def test_json_given_as_a_text_is_taken_as_json() -> None:
    assert correct("json", '{"a": 1}', '{"a": 1.0}') == 1


@pytest.mark.parametrize("value", ["B", '"B"', "[1]", "{", 5, True, ["a"]])
def test_what_holds_no_json_object_is_no_reference_for_json(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a JSON object"):
        scorer(Scoring(scorer="json")).right(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_json_object_equals_itself(value: dict[str, Any]) -> None:
    chosen = scorer(Scoring(scorer="json"))
    found = chosen.read(Reply(json.dumps(value)))
    right = chosen.right(value)
    assert found.answer == right
    assert set(chosen.judge(found.answer, [right]).values()) == {1.0}
