"""What goes over the wire to Anthropic and how its answers are read."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from services import further
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers import anthropic_wire
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.base import ProviderError, Request
from services.evaluator.tasks.base import Item, Message, Response
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
MODEL = "claude-sonnet-4-5"
LATER = "claude-opus-5-5"
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two three")), "positive", "h", "p")


def stub_of(*faults: Fault, models: tuple[str, ...] = (MODEL, LATER)) -> AnthropicServer:
    return AnthropicServer(Behaviour(answer=lambda prompt: "Answer: positive", faults=deque(faults), models=models))


async def call(
    stub: AnthropicServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = MODEL,
    stream: bool = False,
    **changes: Any,
) -> Response:
    item = changes.pop("item", ITEM)
    async with stub:
        provider = AnthropicProvider(replace(Endpoint("anthropic", "anthropic", stub.url), **changes))
        try:
            return await provider.generate(Request(model, sampling or job_pb2.Sampling(), TASK, item, 0, stream))
        finally:
            await provider.close()


def extra_of(fields: dict[str, Any], **given: Any) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling(**given)
    further.write(sampling, fields)
    return sampling


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(fault), **changes)
    return caught.value


async def test_the_systems_words_stand_apart_and_a_limit_is_always_sent() -> None:
    stub = stub_of()
    response = await call(stub)
    assert stub.records[0].path == "/v1/messages"
    assert stub.records[0].body == {
        "model": MODEL,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "one two three"}],
        "max_tokens": 8192,
        "temperature": 0,
    }
    assert response.parameters == '{"max_tokens":8192,"temperature":0}'


def test_what_a_tool_said_comes_from_the_users_side() -> None:
    said = anthropic_wire.prompt([Message("user", "a"), Message("assistant", "b"), Message("tool", "c")])
    assert [turn["role"] for turn in said["messages"]] == ["user", "assistant", "user"]


async def test_the_key_travels_in_its_own_header_beside_the_version() -> None:
    stub = stub_of()
    await call(stub, api_key_env="ANTHROPIC_API_KEY", api_key="k-1")
    headers = stub.records[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-1", "2023-06-01")
    assert "Authorization" not in headers


@pytest.mark.parametrize(("field", "value"), [("temperature", 0.7), ("top_p", 0.9), ("top_k", 40), ("max_tokens", 64)])
async def test_each_parameter_is_sent_when_it_is_set(field: str, value: float) -> None:
    stub = stub_of()
    sampling = job_pb2.Sampling()
    setattr(sampling, field, value)
    await call(stub, sampling)
    assert stub.records[0].body[field] == value


@pytest.mark.parametrize("field", ["seed", "repeat_penalty", "context_length"])
async def test_a_parameter_that_cannot_be_sent_is_refused_and_not_dropped(field: str) -> None:
    stub = stub_of()
    sampling = job_pb2.Sampling()
    setattr(sampling, field, 1)
    with pytest.raises(ProviderError) as caught:
        await call(stub, sampling)
    assert caught.value.fatal
    assert f"does not take {field}" in caught.value.message
    assert stub.records == []


async def test_later_models_are_asked_without_sampling() -> None:
    stub = stub_of()
    await call(stub, model=LATER)
    assert "temperature" not in stub.records[0].body
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(), job_pb2.Sampling(temperature=0.0), model=LATER)
    assert caught.value.message == f"{LATER} does not take temperature. Leave it out of the job's parameters."


async def test_thinking_is_asked_for_without_a_temperature() -> None:
    stub = stub_of()
    await call(stub, extra_of({"thinking": {"type": "enabled", "budget_tokens": 2048}}))
    body = stub.records[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert "temperature" not in body


async def test_blank_stop_sequences_which_it_refuses_are_not_sent() -> None:
    stub = stub_of()
    await call(stub, item=replace(ITEM, stop=("\n\n", "\nQ:", " ")))
    assert stub.records[0].body["stop_sequences"] == ["\nQ:"]


@pytest.mark.parametrize("field", ["messages", "system", "stream"])
async def test_further_fields_may_not_replace_what_is_written(field: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await call(stub_of(), extra_of({field: "x"}))
    assert caught.value.fatal


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
