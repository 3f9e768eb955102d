"""Errors of servers of OpenAI's API."""

from __future__ import annotations

from collections import deque

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.unit.evaluator.providers.openai.calls import ITEM, TASK, call, refusal
from touchstone.v1 import job_pb2


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 9000.", ""),
        ("anything", "context_length_exceeded"),
        ("request (8889 tokens) exceeds the available context size (4096 tokens)", ""),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 4096.", ""),
    ],
)
async def test_a_prompt_that_does_not_fit_is_the_items_own_outcome(message: str, code: str) -> None:
    response = await call(OpenAIServer(Behaviour(faults=deque([Fault("400", message=message, code=code)]))))
    assert response.input_truncated
    assert response.text == ""


async def test_a_limit_that_leaves_no_room_for_the_prompt_is_the_jobs_fault_and_not_the_items() -> None:
    said = (
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 "
        "tokens and your request has 20 input tokens (5000 > 4096 - 20)."
    )
    stub = OpenAIServer(Behaviour(always=Fault("400", message=said)))
    with pytest.raises(ProviderError, match="Lower max_tokens") as refused:
        await call(stub)
    assert not refused.value.retryable


async def test_a_filtered_prompt_is_the_items_own_outcome() -> None:
    response = await call(OpenAIServer(Behaviour(faults=deque([Fault("400", code="content_filter")]))))
    assert response.refused


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("403", "stub requires moderation. Your input was flagged for violence. No credits were charged."),
        ("400", "Invalid prompt: your prompt was flagged as potentially violating our usage policy."),
    ],
)
async def test_a_flagged_prompt_is_the_items_own_outcome_and_no_refused_key(status: str, message: str) -> None:
    response = await call(OpenAIServer(Behaviour(faults=deque([Fault(status, message=message)]))))
    assert response.refused
    assert response.note == message.rstrip("."), "in the provider's words"


@pytest.mark.parametrize("status", ["401", "403"])
async def test_a_refused_key_is_fatal_and_names_the_variable_but_not_the_key(status: str) -> None:
    error = await refusal(Fault(status, message="Incorrect key sk-1"), api_key_env="VLLM_KEY", api_key="sk-1")
    assert error.fatal
    assert error.message.startswith("vllm-a refused the key (Incorrect key [key]")
    assert error.message.endswith("). Set VLLM_KEY where the evaluator runs and restart it.")
    assert "sk-1" not in error.message


async def test_a_missing_key_is_fatal_before_any_call() -> None:
    stub = OpenAIServer()
    with pytest.raises(ProviderError) as caught:
        await call(stub, name="openai", api_key_env="OPENAI_API_KEY")
    assert caught.value.fatal
    assert caught.value.message == "AI provider error: API key not configured for OpenAI"
    assert stub.records == []


async def test_an_unknown_model_is_fatal_and_named() -> None:
    with pytest.raises(ProviderError) as caught:
        await call(OpenAIServer(), model="absent-7b")
    assert caught.value.fatal
    assert caught.value.message == "vllm-a does not have model absent-7b. Choose one that it lists."


async def test_a_wrong_address_is_fatal_and_says_what_to_correct() -> None:
    stub = OpenAIServer()
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url.removesuffix("/v1")))
        with pytest.raises(ProviderError) as caught:
            await provider.generate(Request("stub", job_pb2.Sampling(), TASK, ITEM))
        await provider.close()
    assert caught.value.fatal
    assert "usually ends in /v1" in caught.value.message


@pytest.mark.parametrize("status", ["408", "409", "425", "500", "502", "503", "504"])
async def test_passing_failures_are_retryable(status: str) -> None:
    error = await refusal(Fault(status, message="busy", retry_after="3"))
    assert error.retryable
    assert not error.fatal
    assert not error.rate_limited
    assert error.retry_after_s == 3
    assert error.unreachable == (status in ("502", "503", "504"))
    assert error.message == f"vllm-a failed with status {status}: busy. Check its log or status page, then retry."


async def test_a_rate_limit_is_retryable_and_carries_the_wait() -> None:
    error = await refusal(Fault("429", retry_after="26"))
    assert error.retryable
    assert error.rate_limited
    assert error.retry_after_s == 26


async def test_a_parameter_that_the_server_refuses_is_fatal_and_says_where_to_note_it() -> None:
    message = "Unsupported value: 'temperature' does not support 0 with this model."
    error = await refusal(Fault("400", message=message, code="unsupported_value"))
    assert error.fatal
    assert "'temperature' does not support 0" in error.message
    assert '[endpoint.model."stub"]' in error.message


@pytest.mark.parametrize("fault", [Fault("429", code="insufficient_quota"), Fault("402")])
async def test_used_up_credit_is_fatal(fault: Fault) -> None:
    error = await refusal(fault)
    assert error.fatal
    assert not error.retryable


@pytest.mark.parametrize("kind", ["truncated", "empty", "reset"])
async def test_a_broken_answer_is_retryable(kind: str) -> None:
    assert (await refusal(Fault(kind))).retryable


async def test_another_refusal_is_neither_retried_nor_fatal() -> None:
    error = await refusal(Fault("400", message="bad character"))
    assert not error.retryable
    assert not error.fatal
