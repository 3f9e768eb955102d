"""Grok's answers and errors are read."""

from __future__ import annotations

import pytest

from services.evaluator.providers.protocol.provider import ProviderError
from tests.servers.stub import Fault
from tests.unit.evaluator.providers.grok_calls import APIS, PLAIN, call, refusal, stub_of


@APIS
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_read_with_its_reasoning_and_exact_cost(api: str, stream: bool) -> None:
    stub = stub_of()
    stub.reasoning = "let me think"
    response = await call(stub, api=api, stream=stream)
    assert (response.text, response.reasoning, response.finish_reason) == ("Answer: positive", "let me think", "stop")
    assert (response.input_tokens, response.output_tokens, response.reasoning_tokens) == (5, 5, 3)
    assert response.cost_usd == pytest.approx(0.0037756)
    assert response.served_model == PLAIN
    assert (0 < response.ttft_ms <= response.latency_ms) == stream


@pytest.mark.parametrize(
    ("status", "reason", "finish", "refused"),
    [("incomplete", "max_output_tokens", "length", False), ("incomplete", "content_filter", "content_filter", True)],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_incomplete_response_says_what_ended_it(
    status: str, reason: str, finish: str, refused: bool, stream: bool
) -> None:
    stub = stub_of()
    stub.status, stub.incomplete = status, reason
    response = await call(stub, stream=stream)
    assert (response.text, response.finish_reason, response.refused) == ("", finish, refused)


@APIS
@pytest.mark.parametrize("kind", ["truncated", "empty", "reset", "garbled"])
async def test_a_broken_answer_is_retryable(api: str, kind: str) -> None:
    assert (await refusal(Fault(kind), api=api)).retryable


@APIS
async def test_a_stream_that_ends_before_its_end_is_retryable(api: str) -> None:
    error = await refusal(Fault("broken"), api=api, stream=True)
    assert error.retryable
    assert "cut an answer short" in error.message


@APIS
@pytest.mark.parametrize("objects", [False, True])
async def test_errors_are_read_as_text_and_as_object(api: str, objects: bool) -> None:
    error = await refusal(Fault("500", message="the model fell over"), objects=objects, api=api)
    assert "grok failed with status 500: the model fell over." in error.message
    assert error.retryable


async def test_a_failed_response_is_retryable_and_told() -> None:
    stub = stub_of()
    stub.status = "failed"
    with pytest.raises(ProviderError) as caught:
        await call(stub, stream=True)
    assert caught.value.retryable
