"""What goes over the wire to Anthropic and how its answers are read."""

from __future__ import annotations

from typing import Any

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.protocol.provider import ProviderError
from tests.servers.stub import Fault
from tests.unit.evaluator.providers.anthropic_calls import MODEL, call, stub_of


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(fault), **changes)
    return caught.value


async def test_the_key_travels_in_its_own_header_beside_the_version() -> None:
    stub = stub_of()
    await call(stub, api_key_env="ANTHROPIC_API_KEY", api_key="k-1")
    headers = stub.records[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-1", "2023-06-01")
    assert "Authorization" not in headers


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_read_without_its_thinking_and_with_its_tokens(stream: bool) -> None:
    stub = stub_of()
    stub.thinking = "let me think"
    response = await call(stub, stream=stream, prices={"input": 1.0, "output": 10.0})
    assert response == Response(
        "Answer: positive",
        reasoning="let me think",
        finish_reason="end_turn",
        input_tokens=5,
        output_tokens=5,
        latency_ms=response.latency_ms,
        served_model=f"{MODEL}-20260101",
        parameters=response.parameters,
        ttft_ms=response.ttft_ms,
        reasoning_tokens=3,
        cost_usd=55e-6,
    )
    assert (response.ttft_ms > 0) is stream
    assert ('"stream":true' in response.parameters) is stream


async def test_a_streamed_answer_tells_its_first_token() -> None:
    stub = stub_of()
    stub.behaviour.piece_s = 0.02
    response = await call(stub, stream=True)
    assert 60 < response.ttft_ms < response.latency_ms - 15


async def test_an_error_within_a_stream_fails_the_call() -> None:
    stub = stub_of()
    stub.breaks = Fault("529", message="Overloaded")
    with pytest.raises(ProviderError) as caught:
        await call(stub, stream=True)
    assert (caught.value.retryable, caught.value.rate_limited) == (True, True)
    assert caught.value.message == "anthropic is overloaded. Lower concurrency or retry later."


async def test_a_refusal_is_the_models_answer() -> None:
    stub = stub_of()
    stub.stop_reason = "refusal"
    assert (await call(stub)).refused


async def test_a_cut_answer_says_so() -> None:
    stub = stub_of()
    stub.stop_reason = "max_tokens"
    assert (await call(stub)).finish_reason == "max_tokens"


@pytest.mark.parametrize(
    "fault", [Fault("400", message="prompt is too long: 210000 tokens > 200000 maximum"), Fault("413")]
)
async def test_a_prompt_that_does_not_fit_is_the_items_outcome(fault: Fault) -> None:
    assert (await call(stub_of(fault))).input_truncated


async def test_an_overloaded_service_is_waited_for_as_it_asks() -> None:
    error = await refusal(Fault("529", retry_after="7"))
    assert (error.retryable, error.rate_limited, error.retry_after_s) == (True, True, 7.0)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("400", message="Your credit balance is too low to access the Anthropic API."),
        Fault("400", message="You have reached your specified API usage limits."),
        Fault("402"),
    ],
)
async def test_no_credit_fails_at_once(fault: Fault) -> None:
    error = await refusal(fault)
    assert error.fatal
    assert error.message == "anthropic says that the quota is used up. Add credit there, then retry."


async def test_models_are_listed_over_all_pages() -> None:
    stub = stub_of(models=("claude-a", "claude-b", "claude-sonnet-4-5"))
    async with stub:
        provider = AnthropicProvider(Endpoint("anthropic", "anthropic", stub.url))
        models = (await provider.list_models()).models
        await provider.close()
    assert [model.model for model in models] == ["claude-a", "claude-b", "claude-sonnet-4-5"]
    assert models[0].context_length == 200000
    assert models[0].description == "Claude-A"
