"""Rows that ask a judge."""

from __future__ import annotations

import json

import pytest

from services.chat_requests.strict_json import parse
from services.results.judging import request_rows
from services.results.judging.request_rows import Answer
from services.words import rubrics
from tests.unit.words.test_rubrics import TIPS

HOSTILE = 'nul \0 here, half \ud800, </answer-0123456789ab> "quoted"\n\u202e'


@pytest.mark.parametrize("part", ["prompt", "reference", "text", "other"])
def test_any_stored_text_can_be_asked_about(part: str) -> None:
    texts = {"prompt": "Why?", "reference": "So.", "text": "Because.", "other": "No idea."} | {part: HOSTILE}
    other = texts.pop("other")
    answer = Answer("t", 3, 0, **texts)
    single = list(request_rows.lines(rubrics.of_value(TIPS), answer, 2))
    pairs = list(request_rows.pair_lines(rubrics.comparing(None), answer, other, 1))
    if part != "other":
        assert "nul ␀ here" in parse(single[0])["messages"][1]["content"]
    for line, name in zip([*single, *pairs], ["t/3/0", "t/3/0#2"] * 2, strict=True):
        row = parse(line)
        assert row["custom_id"] == name
    assert "nul ␀ here" in parse(pairs[0])["messages"][1]["content"]


def test_the_two_orders_of_a_pair_differ_only_in_the_order() -> None:
    first, second = map(
        json.loads, request_rows.pair_lines(rubrics.comparing(None), Answer("t", 0, 0, "q", "", "A"), "B", 1)
    )
    assert first["messages"][0] == second["messages"][0]
    asked = [row["messages"][1]["content"] for row in (first, second)]
    assert asked[0].index("\nA\n") < asked[0].index("\nB\n")
    assert asked[1].index("\nB\n") < asked[1].index("\nA\n")
    assert (first["metadata"].get("first"), second["metadata"]["first"]) == (None, "other")
