"""What a call took and said is stored before its end, in parts."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.bus import Bus
from services.evaluator.calls.meter import Meter, as_row, most_usd
from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.words.jobs import BUDGET_HEADER
from touchstone.v1.call_pb2 import Call, CallText, RecordedCall
from touchstone.v1.endpoint_pb2 import Prices

HELLO = [{"role": "user", "content": "hello"}]


class Stored:
    """What is published to USAGE, in order."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def publish_usage(self, call: Call) -> int:
        kept = Call()
        kept.CopyFrom(call)
        self.messages.append(kept)
        return len(self.messages)

    async def publish_call_text(self, call: Call, text: CallText) -> None:
        self.messages.append(text)


def metered(stored: Stored) -> Meter:
    return Meter(cast(Bus, stored), Call(call_id="1", owner="ann", endpoint="local", model="m", run="r"), "e1", None)


async def test_texts_come_in_parts_before_the_end() -> None:
    stored = Stored()
    meter = metered(stored)
    meter.record("{}")
    meter.took(Response("x" * 1_200_000, finish_reason="stop", refused=True))
    await meter.end(Call.OUTCOME_ANSWERED, 200)
    *texts, end = stored.messages
    assert [text.part for text in texts] == [0, 1, 2]
    assert max(text.ByteSize() for text in texts) < 1_000_000
    assert (end.texts, end.outcome) == (3, Call.OUTCOME_ANSWERED)
    kept = RecordedCall.FromString(b"".join(text.data for text in texts))
    assert (kept.request, len(kept.response), kept.finish_reason) == ("{}", 1_200_000, "content_filter")


async def test_an_answer_that_cannot_be_read_is_an_error() -> None:
    stored = Stored()
    meter = metered(stored)
    meter.record("{}")
    await meter.end(Call.OUTCOME_ANSWERED, 200)
    assert "not in the form" in RecordedCall.FromString(stored.messages[0].data).error
    assert not stored.messages[1].error


def test_a_request_is_recorded_without_what_does_not_change_the_answer() -> None:
    body = {"model": "m", "stream": True, "user": "u", "messages": HELLO, "temperature": 0.5, "own_field": [1]}
    line = as_row(Call(api=Call.API_CHAT), body)[0]
    assert line == '{"messages":[{"role":"user","content":"hello"}],"temperature":0.5,"own_field":[1]}'
    line, _ = as_row(Call(api=Call.API_RESPONSES), {"model": "m", "input": "hello", "max_output_tokens": 9})
    assert line == '{"messages":[{"role":"user","content":"hello"}],"max_completion_tokens":9}'


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n": 2}, "n"),
        ({"web_search_options": {"x": 1}}, "search"),
        ({"web_search_options": {}}, "search"),
        ({"messages": [{"role": "user", "content": "x" * 2_000_001}]}, ""),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, ""),
        ({"messages": [{"role": "robot", "content": "x"}]}, ""),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_what_no_row_can_have_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedCallError) as caught:
        as_row(Call(api=Call.API_CHAT), {"messages": HELLO, **fields})
    assert caught.value.status == 400
    assert caught.value.message.startswith(("The call cannot be recorded", "A recorded call has"))
    assert not words or words in caught.value.message


PRICES = Prices(input=1.0, output=10.0)


def most(asked: dict[str, Any], kind: str = "openai", known: Prices | None = PRICES, **fields: Any) -> float:
    call = Call(model="m", **({"api": Call.API_CHAT} | fields))
    return most_usd(Endpoint("local", kind, ""), call, asked, as_row(call, asked)[1], known)


def test_the_most_that_a_call_may_cost_bounds_what_it_reads_and_writes() -> None:
    short = most({"messages": HELLO, "max_tokens": 100})
    assert 100 * 10e-6 < short < 100 * 10e-6 + 1000 * 1e-6
    assert most({"messages": HELLO, "max_completion_tokens": 200}) == pytest.approx(short + 100 * 10e-6)
    longer = most({"messages": [{"role": "user", "content": "x" * 5005}], "max_tokens": 100})
    assert longer == pytest.approx(short + 5000 * 1e-6)
    assert most({"input": "hello", "max_output_tokens": 100}, api=Call.API_RESPONSES) == pytest.approx(short)
    assert most({"messages": HELLO}, kind="anthropic") > 0


@pytest.mark.parametrize(
    ("body", "kind", "known", "param", "words"),
    [
        ({}, "openai", PRICES, "max_completion_tokens", "needs max_completion_tokens"),
        ({"max_tokens": 9}, "openai", None, BUDGET_HEADER, f"leave {BUDGET_HEADER} out"),
        ({"max_tokens": 9, "service_tier": "priority"}, "openai", PRICES, "service_tier", "no known limit"),
        ({"max_tokens": 9, "prediction": {"x": 1}}, "openai", PRICES, "prediction", "no known limit"),
        ({"max_tokens": 9}, "http", PRICES, BUDGET_HEADER, "application"),
    ],
)
def test_a_call_that_nothing_bounds_is_refused(
    body: dict[str, Any], kind: str, known: Prices | None, param: str, words: str
) -> None:
    with pytest.raises(RefusedCallError, match=words) as caught:
        most({"messages": HELLO, **body}, kind, known)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert "budget_usd" not in caught.value.message
