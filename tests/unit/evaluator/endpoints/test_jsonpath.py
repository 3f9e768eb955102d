"""Where an application's answer stands in its JSON."""

from __future__ import annotations

from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints.jsonpath import JsonPath, NotFoundThereError

DOCUMENT = {
    "a": {"b": [{"c d": "first"}, {"c d": "second"}], "e-f": 1},
    "output": [
        {"type": "search", "text": "no"},
        {"type": "message", "ok": True, "text": "yes"},
        {"type": "message", "ok": 1, "text": "again"},
    ],
    "nothing": None,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [DOCUMENT]),
        ("$.a.b[0]['c d']", ["first"]),
        ('$["a"].b[-1]["c d"]', ["second"]),
        ("$.a.b[*]['c d']", ["first", "second"]),
        ("$.a.e-f", [1]),
        ("$.output[?@.type=='message'].text", ["yes", "again"]),
        ('$.output[?(@.type == "search")].text', ["no"]),
        ("$.output[?@.ok==true].text", ["yes"]),
        ("$.output[?@.ok==1].text", ["again"]),
        ("$.nothing", [None]),
    ],
)
def test_a_path_finds_every_value_that_it_leads_to(path: str, found: list[Any]) -> None:
    assert JsonPath.parse(path).find(DOCUMENT) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("$.a.x", "there is no .x at $.a, which has b, e-f"),
        ("$.a.b[2].x", "there is no [2] at $.a.b, which is a list of 2"),
        ("$.a.b[0]['c d'].x", "there is no .x at $.a.b[0]['c d'], which is a text"),
        ("$.output[?@.type=='tool'].text", "there is no [?@.type=='tool'] at $.output, which is a list of 3"),
        ("$.nothing.x", "there is no .x at $.nothing, which is null"),
        ("$[0]", "there is no [0] at $, which has a, output, nothing"),
    ],
)
def test_a_path_that_leads_nowhere_says_at_which_step(path: str, said: str) -> None:
    with pytest.raises(NotFoundThereError) as caught:
        JsonPath.parse(path).find(DOCUMENT)
    assert str(caught.value) == said


@pytest.mark.parametrize("path", ["", "a.b", "$.", "$.a[", "$.a..b", "$.a[?@.x]", "$ .a", "$.a b"])
def test_what_is_no_path_is_refused_with_what_a_step_is(path: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        JsonPath.parse(path)
    assert repr(path) in caught.value.message


def test_first_of_a_path_that_leads_nowhere_is_none() -> None:
    assert JsonPath.parse("$.x").first(DOCUMENT) is None
