"""Further fields of a request: kept in their order with their digits, read from what earlier versions stored."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services import further_fields
from touchstone.v1 import job_pb2

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4))


def of(values: dict[str, Any]) -> job_pb2.Sampling:
    made = job_pb2.Sampling()
    further_fields.write(made, values)
    return made


def stored(values: dict[str, Any]) -> job_pb2.Sampling:
    """As versions up to 0.1 wrote them."""
    made = job_pb2.Sampling()
    made.extra.update(values)
    return job_pb2.Sampling.FromString(made.SerializeToString())


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_written_is_read_in_its_order_with_its_digits(values: dict[str, Any]) -> None:
    values = json.loads(json.dumps(values))
    if further_fields.fault(values):
        return
    sampling = job_pb2.Sampling.FromString(of(values).SerializeToString())
    assert json.dumps(further_fields.fields(sampling)) == json.dumps(values)
    assert further_fields.dump(further_fields.parse(sampling.extra_json or "{}")) == further_fields.dump(values)
    assert not sampling.HasField("extra")


def test_numbers_stay_as_they_are_written() -> None:
    text = '{"a":1,"b":1.0,"c":12345678901234567890123,"d":-0.0,"e":[5.0,{"f":1e300}]}'
    assert further_fields.dump(further_fields.parse(text)) == text.replace("1e300", "1e+300")


def test_what_an_earlier_version_stored_is_read_with_whole_numbers_and_one_order() -> None:
    for keys in permutations(("reasoning", "answer", "b", "10")):
        sampling = stored({"format": {key: {"minimum": 1} for key in keys}, "seed": 5})
        assert list(further_fields.fields(sampling)["format"]) == sorted(keys)
        assert further_fields.dump(further_fields.fields(sampling)["seed"]) == "5"
    assert further_fields.fields(job_pb2.Sampling(temperature=1)) == {}


def test_the_newer_field_counts_where_both_are_there() -> None:
    sampling = stored({"a": 1})
    sampling.extra_json = '{"b":2}'
    assert further_fields.fields(sampling) == {"b": 2}
    further_fields.write(sampling, {})
    assert sampling == job_pb2.Sampling()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"a":NaN}', "contains NaN"),
        ('{"a":-Infinity}', "contains -Infinity"),
        ('{"a":1e400}', "too large"),
        ('{"a":{"b":1,"b":2}}', "the same name twice"),
        ('{"a":"\\ud800"}', "half a character"),
        ('{"a":' + "[" * 17 + "]" * 17 + "}", "nests more than 16"),
        ('{"a":' + "[" * 9999 + "]" * 9999 + "}", "nests more than 16"),
        ('{"a":' + "1" * 5000 + "}", "too many digits"),
    ],
)
def test_what_no_request_could_hold_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        further_fields.parse(text)


def test_sixteen_levels_are_taken() -> None:
    text = '{"a":' + "[" * 16 + "]" * 16 + "}"
    assert further_fields.dump(further_fields.parse(text)) == text


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"logprobs": True}, ""),
        ({"logprobs": True, "top_logprobs": 20}, ""),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": True}, "top_logprobs"),
        ({"generationConfig": {"logprobs": True}}, "logprobs"),
        ({"logprobs": 5}, "logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"generationConfig": {"responseLogprobs": True}}, "responseLogprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"logprobs": False, "top_logprobs": None, "include": ["a"], "user": "logprobs"}, ""),
    ],
)
def test_a_wish_for_log_probabilities_is_found(values: dict[str, Any], name: str) -> None:
    assert further_fields.asks_logprobs(values) == name


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ({"a": 1, "b": [1, 2]}, False),
        ({"a": {"b": {"c": 1}}}, False),
        ({"a": [{"b": {"c": 1, "d": 2}}]}, True),
    ],
)
def test_only_what_stands_in_a_field_has_an_order(values: dict[str, Any], ordered: bool) -> None:
    assert further_fields.is_ordered(of(values)) is ordered
    assert not further_fields.is_ordered(stored(values))
