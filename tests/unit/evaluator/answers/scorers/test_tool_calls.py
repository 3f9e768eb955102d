"""Tool calls against expected ones."""

from __future__ import annotations

import json
import time
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.evaluator.answers.scorers.choosing import scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.growth import is_about_linear
from tests.unit.evaluator.answers.scorers.scored import TEXTS, by_field, judged
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.scoring_pb2 import Scoring

TOOL_CALLS = Scoring(scorer="tool_calls")
PARIS = {"name": "weather", "arguments": {"city": "Paris", "days": 2}}
TIME = {"name": "time", "arguments": {"zone": "CET"}}
MADE = '{"city": "Paris", "days": 2}'


def called(*calls: tuple[str, str], text: str = "", cut: bool = False) -> Reply:
    return Reply(text, cut, calls=tuple(ToolCall(id="c", name=name, arguments=given) for name, given in calls))


def shares(reply: Reply, *rights: Any) -> tuple[float, float, float]:
    found = judged(TOOL_CALLS, reply, *rights)
    return found["correct"], found["call_names"], found["call_arguments"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (MADE, (1, 1, 1)),
        ('{"days": 2.0, "city": "Paris"}', (1, 1, 1)),
        ('{"days": 2e0, "city": "\\u0050aris"}', (1, 1, 1)),
        ('{"city": "Paris", "days": "2"}', (0, 1, 0.5)),
        ('{"city": "Paris", "days": true}', (0, 1, 0.5)),
        ('{"city": "paris", "days": 2}', (0, 1, 0.5)),
        ('{"city": "Paris"}', (0, 1, 0.5)),
        ('{"city": "Paris", "days": 2, "unit": "C"}', (0, 1, 2 / 3)),
        ('{"city": "Paris", "days": 2', (0, 1, 0)),
        ('[{"city": "Paris", "days": 2}]', (0, 1, 0)),
        ("null", (0, 1, 0)),
        ('"null"', (0, 1, 0)),
        ("", (0, 1, 0)),
        ('{"city": "Paris", "days": NaN}', (0, 1, 0)),
        ('{"city": "Paris", "days": 1e999}', (0, 1, 0)),
        ('{"city": "Paris", "days": ' + "9" * 5000 + "}", (0, 1, 0)),
        ('{"city": ' + "[" * 100_000, (0, 1, 0)),
        ('{"city": ' + "[" * 500 + "]" * 500 + "}", (0, 1, 0)),
        ('{"city": "\\ud800", "days": 2}', (0, 1, 0.5)),
    ],
)
def test_arguments_are_compared_as_json_by_value(given: str, expected: tuple[float, ...]) -> None:
    assert shares(called(("weather", given)), [PARIS]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expected", "given", "is_right"),
    [
        ({"a": 2**53 + 1}, '{"a": 9007199254740992.0}', False),
        ({"a": 0.1}, '{"a": 0.10}', True),
        ({"a": 0}, '{"a": -0.0}', True),
        ({"a": False}, '{"a": 0}', False),
        ({"a": None}, '{"a": null}', True),
        ({"a": None}, "{}", False),
        ({"a": [1, 2]}, '{"a": [2, 1]}', False),
        ({"a": [1, {"b": True}]}, '{"a": [1.0, {"b": true}]}', True),
        ({"a": {}}, '{"a": []}', False),
        ({}, "", True),
        ({}, "{}", True),
        ({}, " ", True),
        ({}, '{"a": 1}', False),
    ],
)
def test_values_are_equal_as_json(expected: Any, given: str, is_right: bool) -> None:
    assert shares(called(("f", given)), [{"name": "f", "arguments": expected}])[0] == is_right


@pytest.mark.parametrize(
    "form",
    [
        {"type": "function", "id": "call_9", "function": {"name": "weather", "arguments": MADE}},
        {"function": {"name": "weather", "arguments": {"days": 2, "city": "Paris"}}},
        PARIS,
        {"name": "weather", "arguments": MADE},
        {"weather": {"city": ["Paris"], "days": [2]}},
    ],
)
def test_every_form_of_a_reference_means_the_same_calls(form: dict[str, Any]) -> None:
    for reference in ([form], form, json.dumps([form]), json.dumps(form)):
        assert shares(called(("weather", MADE)), reference) == (1, 1, 1)
        assert shares(called(("weather", '{"city": "Rome", "days": 2}')), reference) == (0, 1, 0.5)


def test_allowed_values_and_arguments_that_may_be_left_out() -> None:
    allowed = [{"geo.area": {"base": [10, 10.5], "unit": ["m", "units", ""], "at": [{"x": [1, 2], "y": [3, ""]}]}}]
    for right in (
        '{"base": 10, "at": {"x": 2}}',
        '{"base": 10.5, "unit": "m", "at": {"y": 3, "x": 1}}',
        '{"base": 10, "unit": "", "at": {"x": 1}}',
    ):
        assert shares(called(("geo_area", right)), allowed) == (1, 1, 1)
    for wrong in (
        '{"base": 11, "unit": "m", "at": {"x": 1}}',
        '{"base": 10, "unit": "km", "at": {"x": 1}}',
        '{"base": 10, "unit": "m", "at": {"y": 3}}',
        '{"base": 10, "unit": "m", "at": {"x": 1, "z": 1}}',
        '{"base": 10, "unit": "m", "at": {"x": [1, 2], "y": 3}}',
    ):
        assert shares(called(("geo_area", wrong)), allowed) == pytest.approx((0, 1, 2 / 3))
    several = [{"query": {"where": [[{"field": ["age"], "value": [25, "25"]}, {"field": ["name"], "value": [""]}]]}}]
    assert shares(called(("query", '{"where": [{"field": "age", "value": 25}, {"field": "name"}]}')), several)[0] == 1
    assert shares(called(("query", '{"where": [{"field": "name"}, {"field": "age", "value": 25}]}')), several)[0] == 0
    assert shares(called(("query", '{"where": [{"field": "age", "value": 25}]}')), several)[0] == 0


def test_parallel_calls_match_in_any_order_and_each_once() -> None:
    calls = [("weather", MADE), ("weather", '{"city": "Rome", "days": 1}'), ("time", '{"zone": "CET"}')]
    rome = {"name": "weather", "arguments": {"city": "Rome", "days": 1}}
    for order in permutations(calls):
        assert shares(called(*order), [PARIS, rome, TIME]) == (1, 1, 1)
    assert shares(called(calls[0], calls[0], calls[2]), [PARIS, rome, TIME]) == pytest.approx((0, 1, 3 / 5))
    assert shares(called(*calls, calls[0]), [PARIS, rome, TIME]) == pytest.approx((0, 3 / 4, 5 / 7))
    assert shares(called(calls[2]), [PARIS, rome, TIME]) == pytest.approx((0, 1 / 3, 1 / 5))
    assert shares(called(("rain", MADE)), [PARIS]) == (0, 0, 0)


def test_a_call_that_fits_two_expected_ones_leaves_the_other_its_own() -> None:
    wide = [{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}]
    for order in permutations([("f", '{"a": 1}'), ("f", '{"a": 2}')]):
        for expected in permutations(wide):
            assert shares(called(*order), [*expected])[0] == 1
    assert shares(called(("f", '{"a": 2}'), ("f", '{"a": 2}')), wide) == (0, 1, 0.5)


def test_where_no_call_is_expected_an_answer_without_one_is_right() -> None:
    ways: list[Any] = [[], [[]], "[]"]
    for none in ways:
        answers = scorer(TOOL_CALLS).several(none)  # type: ignore[misc]
        assert shares(Reply("I cannot know that."), *answers) == (1, 1, 1)
        assert shares(Reply(""), *answers) == (1, 1, 1)
        assert shares(called(("f", "")), *answers) == (0, 0, 0)
        assert shares(called(("f", '{"a": 1}')), *answers) == (0, 0, 0)
    assert shares(Reply("It is sunny."), [PARIS]) == (0, 0, 0)
    assert scorer(TOOL_CALLS).read(Reply("I will look it up. First", cut=True)).answer == ""
    assert shares(called(("weather", MADE), cut=True), [PARIS]) == (1, 1, 1)


def test_the_best_of_several_right_answers_counts() -> None:
    answers = scorer(TOOL_CALLS).several([[PARIS], [TIME], []])  # type: ignore[misc]
    assert len(answers) == 3
    assert shares(called(("time", '{"zone": "CET"}')), *answers) == (1, 1, 1)
    assert shares(Reply("No."), *answers) == (1, 1, 1)
    assert by_field(TOOL_CALLS, called(("weather", '{"city": "Paris"}')), *answers) == {
        "weather": 1,
        "weather.city": 1,
        "weather.days": 0,
    }


def test_every_expected_argument_is_judged_by_its_name() -> None:
    rome = {"name": "weather", "arguments": {"city": "Rome"}}
    reply = called(("weather", '{"city": "Paris", "days": 3}'), ("weather", '{"city": "Oslo"}'))
    assert by_field(TOOL_CALLS, reply, [PARIS, rome, TIME]) == {
        "weather": 1,
        "weather.city": 0.5,
        "weather.days": 0,
        "time": 0,
        "time.zone": 0,
    }
    unread = {"weather": 0, "weather.city": 0, "weather.days": 0}
    assert by_field(TOOL_CALLS, Reply("Let me", cut=True), [PARIS]) == unread
    assert by_field(TOOL_CALLS, Reply("No."), []) == {}


def test_names_of_fields_fit_into_a_message() -> None:
    names = {f"{'ü' * 300}{number}": 1 for number in range(300)} | {"\ud800\0": 1}
    found = by_field(TOOL_CALLS, called(("f", json.dumps(names))), [{"name": "f", "arguments": names}])
    assert found
    assert set(found.values()) == {1}
    assert sum(len(name.encode()) for name in found) <= 16 * 1024
    assert not any("\0" in name for name in found)


def test_a_pattern_takes_the_calls_out_of_a_text() -> None:
    prompted = Scoring(scorer="tool_calls", answer_pattern=r"(?s)<tool_call>(.*?)</tool_call>")
    text = f"Let me see. <tool_call>{json.dumps(PARIS)}</tool_call>"
    assert judged(prompted, Reply(text), [PARIS])["correct"] == 1
    assert judged(prompted, Reply(text.replace("Paris", "Rome")), [PARIS])["correct"] == 0
    chosen = scorer(prompted)
    for broken in ("<tool_call>weather(</tool_call>", '<tool_call>{"f": {"a": [1]}}</tool_call>', "weather"):
        assert chosen.read(Reply(broken)).answer == ""


def test_the_same_calls_in_any_order_are_one_prediction() -> None:
    read = scorer(TOOL_CALLS).read
    one = read(called(("weather", MADE), ("time", "{}")))
    other = read(called(("time", ""), ("weather", '{"days": 2.0, "city": "Paris"}')))
    assert (
        one.answer
        == other.answer
        == ('[{"name":"time","arguments":{}},{"name":"weather","arguments":{"city":"Paris","days":2}}]')
    )
    assert (one.how, read(Reply("")).how) == ("2 tool calls", "no tool call")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("weather", "is not JSON"),
        (5, "is not a list of calls"),
        ([5], "is not a list of calls"),
        ([{"weather": 1}], "is not a list of calls"),
        ([{"weather": {"city": "Paris"}}], "is not a list of calls"),
        ([{"weather": {"city": []}}], "is not a list of calls"),
        ([{"a": {}, "b": {}}], "is not a list of calls"),
        ([{"name": " ", "arguments": {}}], "has a call without a name"),
        ([{"name": "f", "arguments": "{"}], "has a call of 'f' whose \"arguments\" are not a JSON object"),
        ([{"name": "f", "arguments": [1]}], "has a call of 'f' whose \"arguments\" are not a JSON object"),
        ([PARIS] * 129, "has 129 calls; at most 128 are allowed"),
    ],
)
def test_what_no_calls_can_be_read_from_is_no_reference(reference: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        scorer(TOOL_CALLS).right(reference)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_any_calls_are_scored(calls: list[tuple[str, str]]) -> None:
    for value in judged(TOOL_CALLS, called(*calls), [PARIS, {"weather": {"city": ["Paris", ""]}}]).values():
        assert 0 <= value <= 1


NAMES = st.sampled_from(["f", "g", "a.b", " x "])
VALUES = st.sampled_from([0, 1, 1.5, True, None, "1", [1, "a"], {"b": [2]}, {}])
CALLS = st.fixed_dictionaries({"name": NAMES, "arguments": st.dictionaries(NAMES, VALUES, max_size=3)})


@given(st.lists(CALLS, max_size=5), st.randoms())
def test_the_very_calls_that_are_expected_are_judged_as_if_they_were_paired(calls: list[Any], chance: Any) -> None:
    made = [(one["name"], json.dumps(one["arguments"])) for one in calls]
    chance.shuffle(made)
    quick = judged(TOOL_CALLS, called(*made), calls)
    paired = judged(TOOL_CALLS, called(*made), [exact("nothing"), *calls], calls)
    assert quick == paired
    assert {*quick.values()} == {1.0}


def test_many_calls_that_all_fit_hold_up_nobody() -> None:
    expected = [{"f": {"a": [*range(number, 40)]}} for number in range(40)]

    def score(size: int) -> None:
        calls = [("f", json.dumps({"a": 39, "b": [1] * 50}))] * (size // 150)
        assert shares(called(*calls), expected)[0] == 0

    assert is_about_linear(score, 150 * 4000)


def exact(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


F1, F2, G = exact("f", a=1), exact("f", a=2), exact("g", b="x")
MADE_F1, MADE_F2, MADE_G = ("f", '{"a": 1}'), ("f", '{"a": 2}'), ("g", '{"b": "x"}')
OPEN = [{"f": {"a": [1, 2], "unit": ["C", ""]}}]
NESTED = exact("f", a={"b": [1, {"c": None}], "d": ""})


@pytest.mark.parametrize(
    ("reference", "calls", "is_right"),
    [
        # Which calls are made.
        ([F1], [MADE_F1], True),
        ([F1], [], False),
        ([F1], [MADE_F2], False),
        ([F1], [MADE_G], False),
        ([F1], [MADE_F1, MADE_G], False),
        ([F1], [MADE_F1, MADE_F1], False),
        ([F1, F1], [MADE_F1], False),
        ([F1, F1], [MADE_F1, MADE_F1], True),
        ([F1, F2, G], [MADE_G, MADE_F2, MADE_F1], True),
        ([F1, F2, G], [MADE_G, MADE_F2, MADE_F2], False),
        ([F1, F2], [MADE_F1], False),
        ([], [], True),
        ([], [MADE_F1], False),
        ([], [("f", "")], False),
        ([[], [F1]], [], True),
        ([[], [F1]], [MADE_F1], True),
        ([[], [F1]], [MADE_F2], False),
        ([[F1, G], [F2]], [MADE_F2], True),
        ([[F1, G], [F2]], [MADE_F1, MADE_F2], False),
        # Names of functions.
        ([exact("F", a=1)], [MADE_F1], False),
        ([exact("f ", a=1)], [MADE_F1], False),
        ([exact("m.f", a=1)], [("m.f", '{"a": 1}')], True),
        ([exact("m.f", a=1)], [("m_f", '{"a": 1}')], False),
        ([{"m.f": {"a": [1]}}], [("m.f", '{"a": 1}')], True),
        ([{"m.f": {"a": [1]}}], [("m_f", '{"a": 1}')], True),
        ([{"m.f": {"a": [1]}}], [("f", '{"a": 1}')], False),
        ([{"m.f": {"a": [1]}}, exact("m.f", a=2)], [("m.f", '{"a": 2}'), ("m_f", '{"a": 1}')], True),
        # Arguments.
        ([exact("f")], [("f", "")], True),
        ([exact("f")], [("f", "{}")], True),
        ([exact("f")], [("f", "null")], True),
        ([exact("f")], [("f", '"null"')], False),
        ([exact("f")], [("f", "[]")], False),
        ([exact("f", a=None)], [("f", "null")], False),
        ([F1], [("f", '{"a": 1')], False),
        ([F1], [("f", "a=1")], False),
        ([F1], [("f", '"{\\"a\\": 1}"')], False),
        ([F1], [("f", '{"a": NaN}')], False),
        ([F1], [("f", '{"a": 2, "a": 1}')], True),
        ([F1], [("f", '{"a": 1} ')], True),
        ([F1], [("f", '{"a": 1} or so')], False),
        ([F1], [("f", '{"A": 1}')], False),
        # Values.
        ([F1], [("f", '{"a": 1.0}')], True),
        ([F1], [("f", '{"a": "1"}')], False),
        ([F1], [("f", '{"a": [1]}')], False),
        ([exact("f", a=True)], [MADE_F1], False),
        ([exact("f", a="")], [("f", '{"a": null}')], False),
        ([exact("f", a="é")], [("f", '{"a": "\\u00e9"}')], True),
        ([exact("f", a="é")], [("f", '{"a": "e\u0301"}')], False),
        ([exact("f", a="Lyon")], [("f", '{"a": "lyon"}')], False),
        ([exact("f", a="Lyon")], [("f", '{"a": "Lyon "}')], False),
        ([exact("f", a="x" * 100_000)], [("f", json.dumps({"a": "x" * 100_000}))], True),
        ([exact("f", a="x" * 100_000)], [("f", json.dumps({"a": "x" * 99_999}))], False),
        ([NESTED], [("f", '{"a": {"d": "", "b": [1.0, {"c": null}]}}')], True),
        ([NESTED], [("f", '{"a": {"d": "", "b": [{"c": null}, 1]}}')], False),
        ([NESTED], [("f", '{"a": {"d": "", "b": [1, {}]}}')], False),
        # Allowed values.
        (OPEN, [("f", '{"a": 2}')], True),
        (OPEN, [("f", '{"unit": "C", "a": 1.0}')], True),
        (OPEN, [("f", '{"a": 1, "unit": "F"}')], False),
        (OPEN, [("f", '{"a": 1, "unit": ""}')], True),
        (OPEN, [("f", '{"unit": "C"}')], False),
        (OPEN, [("f", '{"a": true}')], False),
        (OPEN, [("f", '{"a": 1, "b": 1}')], False),
        ([{"f": {"a": [{"x": [1, ""], "y": [2]}]}}], [("f", '{"a": {"y": 2}}')], True),
        ([{"f": {"a": [{"x": [1, ""], "y": [2]}]}}], [("f", '{"a": {"x": 1}}')], False),
        ([{"f": {"a": [[{"x": [1, 2]}]]}}], [("f", '{"a": [{"x": 2}]}')], True),
        ([{"f": {"a": [[{"x": [1, 2]}]]}}], [("f", '{"a": [{"x": 2}, {"x": 1}]}')], False),
        ([{"f": {"a": [1, 2]}}, {"f": {"a": [1]}}], [MADE_F1, MADE_F2], True),
    ],
)
def test_the_verdict_is_that_of_a_careful_person(reference: Any, calls: list[tuple[str, str]], is_right: bool) -> None:
    chosen = scorer(TOOL_CALLS)
    assert chosen.several is not None
    assert shares(called(*calls), *chosen.several(reference))[0] == is_right


@pytest.mark.parametrize("count", [128, 1000])
def test_many_calls_are_paired_in_time(count: int) -> None:
    """The expected ones are the last of those that are made."""
    wanted = [exact("f", a=number, more=["x"] * 100) for number in range(128)]
    made = [("f", json.dumps(exact("f", a=number, more=["x"] * 100)["arguments"])) for number in reversed(range(count))]
    began = time.process_time()
    found = shares(called(*made), wanted)
    assert time.process_time() - began < 5
    assert found == pytest.approx((float(count == 128), 128 / count, 128 / count))


def test_the_calls_of_all_right_answers_are_limited() -> None:
    chosen = scorer(TOOL_CALLS)
    assert chosen.several is not None
    with pytest.raises(ValueError, match="has 1,010 calls in its right answers; at most 1,000 are allowed"):
        chosen.several([[F1] * 101] * 10)


@pytest.mark.parametrize("name", ["input", "args", "parameters"])
def test_arguments_under_another_name_are_not_lost(name: str) -> None:
    with pytest.raises(ValueError, match=f"has a call of 'f' with '{name}'; name its arguments \"arguments\""):
        scorer(TOOL_CALLS).right([{"name": "f", name: {"a": 1}}])
