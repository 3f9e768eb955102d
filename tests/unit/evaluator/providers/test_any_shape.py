"""No JSON that a server may send ends a reader with anything but an answer, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.evaluator.endpoints.jsonpath import JsonPath
from services.evaluator.items.task import Response
from services.evaluator.providers import anthropic_wire, gemini_wire, ollama_wire
from services.evaluator.providers.protocol.events import Fold
from services.evaluator.providers.protocol.usage import MalformedError

NAMES = (
    "candidates", "content", "parts", "text", "thought", "finishReason", "promptFeedback", "blockReason",
    "usageMetadata", "promptTokenCount", "error", "details", "violations", "message", "thinking", "done",
    "eval_count", "type", "index", "content_block", "delta", "usage", "output_tokens", "output_tokens_details",
    "stop_reason", "@type", "retryDelay", "models", "id", "size", "capabilities",
    "functionCall", "args", "name", "tool_calls", "function", "arguments", "input", "partial_json", "logprobs", "token",
    "logprob", "top_logprobs", "logprobsResult", "chosenCandidates", "topCandidates", "logProbability",
)  # fmt: skip
TYPES = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
    "text",
    "error",
    "tool_use",
    "input_json_delta",
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TYPES) | st.text(max_size=3)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6)


@pytest.mark.parametrize("wire", [gemini_wire, anthropic_wire, ollama_wire])
@settings(max_examples=25, deadline=None)
@given(body=OBJECTS)
def test_a_whole_answer(wire: ModuleType, body: dict[str, Any]) -> None:
    with suppress(MalformedError):
        assert isinstance(wire.response(body), Response | None)


@pytest.mark.parametrize(
    ("wire", "fold"),
    [
        (gemini_wire, gemini_wire.ContentFold),
        (anthropic_wire, anthropic_wire.MessageFold),
        (ollama_wire, ollama_wire.ChatFold),
    ],
)
@settings(max_examples=25, deadline=None)
@given(events=st.lists(OBJECTS | JSON, max_size=5))
def test_a_streamed_answer(wire: ModuleType, fold: Callable[[], Fold], events: list[Any]) -> None:
    folded = fold()
    with suppress(MalformedError):
        for event in events:
            assert folded.add(event) in (True, False)
    whole = folded.whole()
    assert whole is None or isinstance(wire.response(whole), Response | None)


@settings(max_examples=25, deadline=None)
@given(body=JSON)
def test_googles_error_details(body: Any) -> None:
    details = gemini_wire.error_details(body)
    wait = gemini_wire.retry_after_s(details)
    assert wait is None or wait >= 0
    assert gemini_wire.is_used_up(details, "") in (True, False)
    assert gemini_wire.error_status(body) >= 0


@settings(max_examples=25, deadline=None)
@given(entry=OBJECTS)
def test_a_listed_model(entry: dict[str, Any]) -> None:
    ollama_wire.loaded(ollama_wire.model(entry), entry)
    model = anthropic_wire.model(entry)
    assert model is None or model.model


@pytest.mark.parametrize("path", ["$.message.content[0]", "$.parts[*].text", "$.content[?@.type=='text'].text"])
@settings(max_examples=25, deadline=None)
@given(body=JSON)
def test_a_path(path: str, body: Any) -> None:
    found = JsonPath.parse(path).first(body)
    assert found is None or any(found is value for value in within(body)), "nothing is made up"


def within(body: Any) -> Iterator[Any]:
    yield body
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()
    for value in inner:
        yield from within(value)
