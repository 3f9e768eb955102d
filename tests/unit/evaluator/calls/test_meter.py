"""What a call took and said is stored before its end, in parts."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.bus import Bus
from services.evaluator.calls.meter import Meter, request_line
from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.items.task import Response
from touchstone.v1.call_pb2 import Call, CallText, RecordedCall

HELLO = [{"role": "user", "content": "hello"}]


class Stored:
    """What is published to USAGE, in order."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def publish_usage(self, call: Call) -> None:
        kept = Call()
        kept.CopyFrom(call)
        self.messages.append(kept)

    async def publish_call_text(self, call: Call, text: CallText) -> None:
        self.messages.append(text)


def metered(stored: Stored) -> Meter:
    return Meter(cast(Bus, stored), Call(call_id="1", owner="ann", endpoint="local", model="m", run="r"), "e1")


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
    line = request_line(Call(api=Call.API_CHAT), body)
    assert line == '{"messages":[{"role":"user","content":"hello"}],"temperature":0.5,"own_field":[1]}'
    line = request_line(Call(api=Call.API_RESPONSES), {"model": "m", "input": "hello", "max_output_tokens": 9})
    assert line == '{"messages":[{"role":"user","content":"hello"}],"max_completion_tokens":9}'


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"n": 2}, "n"),
        ({"web_search_options": {"x": 1}}, "search"),
        ({"messages": [{"role": "user", "content": "x" * 2_000_001}]}, ""),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, ""),
        ({"messages": [{"role": "robot", "content": "x"}]}, ""),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_what_no_row_can_have_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedCallError) as caught:
        request_line(Call(api=Call.API_CHAT), {"messages": HELLO, **fields})
    assert caught.value.status == 400
    assert caught.value.message.startswith(("The call cannot be recorded", "A recorded call has"))
    assert not words or words in caught.value.message
