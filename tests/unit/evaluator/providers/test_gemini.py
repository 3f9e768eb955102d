"""What goes over the wire to Gemini and how its answers are read."""

from __future__ import annotations

from typing import Any

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.protocol.provider import ProviderError
from tests.servers.gemini_server import quota_failure, retry_info
from tests.servers.stub import Fault
from tests.unit.evaluator.providers.gemini_calls import MODEL, call, stub_of


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(fault), **changes)
    return caught.value


async def test_the_key_travels_in_its_own_header() -> None:
    stub = stub_of()
    await call(stub, api_key_env="GOOGLE_API_KEY", api_key="k-1")
    assert stub.records[0].headers["x-goog-api-key"] == "k-1"
    assert "Authorization" not in stub.records[0].headers
    assert "k-1" not in stub.records[0].path


async def test_without_a_key_nothing_is_called() -> None:
    stub = stub_of()
    with pytest.raises(ProviderError) as caught:
        await call(stub, api_key_env="GOOGLE_API_KEY")
    assert caught.value.fatal
    assert caught.value.message == "AI provider error: API key not configured for Gemini"
    assert stub.records == []


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_read_without_its_thoughts_and_with_their_tokens(stream: bool) -> None:
    stub = stub_of()
    stub.thought = "let me think"
    response = await call(stub, model="gemini-2.5-flash", stream=stream, prices={"input": 1.0, "output": 10.0})
    assert response == Response(
        "Answer: positive",
        reasoning="let me think",
        finish_reason="STOP",
        input_tokens=7,
        output_tokens=5,
        latency_ms=response.latency_ms,
        served_model="stub-001",
        parameters='{"generationConfig":{"temperature":0}}',
        ttft_ms=response.ttft_ms,
        reasoning_tokens=3,
        cost_usd=57e-6,
    )
    assert (response.ttft_ms > 0) is stream


async def test_a_streamed_answer_tells_its_first_token() -> None:
    stub = stub_of()
    stub.behaviour.piece_s = 0.03
    response = await call(stub, stream=True)
    assert stub.records[0].path == f"/v1beta/models/{MODEL}:streamGenerateContent"
    assert 25 < response.ttft_ms < response.latency_ms - 25


async def test_a_blocked_prompt_is_a_refusal() -> None:
    stub = stub_of()
    stub.blocked = "PROHIBITED_CONTENT"
    for stream in (False, True):
        response = await call(stub, stream=stream)
        assert (response.refused, response.finish_reason, response.text) == (True, "PROHIBITED_CONTENT", "")


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"])
async def test_an_answer_that_was_stopped_by_a_filter_is_a_refusal(reason: str) -> None:
    stub = stub_of()
    stub.finish_reason = reason
    assert (await call(stub)).refused


async def test_a_cut_answer_says_so() -> None:
    stub = stub_of()
    stub.finish_reason = "MAX_TOKENS"
    response = await call(stub)
    assert (response.finish_reason, response.refused) == ("MAX_TOKENS", False)


async def test_a_prompt_that_does_not_fit_is_the_items_outcome() -> None:
    said = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    response = await call(stub_of(Fault("400", message=said)))
    assert response.input_truncated


async def test_the_wait_that_google_asks_for_is_told() -> None:
    details = (quota_failure("GenerateRequestsPerMinutePerProjectPerModel"), retry_info("26.5s"))
    error = await refusal(Fault("429", message="You exceeded your current quota.", details=details))
    assert (error.retryable, error.rate_limited, error.retry_after_s) == (True, True, 26.5)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("429", message="Quota exceeded.", details=(quota_failure("RequestsPerDayPerProject"), retry_info("9s"))),
        Fault("429", message="Quota exceeded for metric: free_tier_requests, limit: 0", details=(retry_info("9s"),)),
    ],
)  # fmt: skip
async def test_a_quota_that_no_wait_brings_back_fails_at_once(fault: Fault) -> None:
    error = await refusal(fault)
    assert error.fatal
    assert error.message == (
        f"gemini says that the quota for {MODEL} is used up. Raise it there or choose another model, then retry."
    )


async def test_a_limit_that_begins_with_zero_is_not_taken_for_none() -> None:
    assert not (await refusal(Fault("429", message="limit: 0.5 requests per second"))).fatal


async def test_models_are_listed_over_all_pages_without_those_that_write_no_text() -> None:
    stub = stub_of(models=("gemini-2.5-flash", "gemma-3-27b-it", "gemini-3.1-pro"))
    async with stub:
        provider = GeminiProvider(Endpoint("gemini", "gemini", stub.url))
        models = (await provider.list_models()).models
        await provider.close()
    assert [model.model for model in models] == ["gemini-2.5-flash", "gemma-3-27b-it", "gemini-3.1-pro"]
    assert [model.context_length for model in models] == [1048576] * 3
    assert models[1].parameters_b == 27
    assert not models[2].capabilities.greedy


async def test_a_model_beyond_the_limit_is_refused_before_any_call() -> None:
    stub = stub_of(models=("gemma-3-27b-it",))
    with pytest.raises(ProviderError) as caught:
        await call(stub, model="gemma-3-27b-it", max_model_b=13.0)
    assert caught.value.message.startswith("gemma-3-27b-it has 27 billion parameters; gemini takes at most 13.")
    assert stub.records == []
