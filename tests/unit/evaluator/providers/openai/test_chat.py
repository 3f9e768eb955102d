"""What goes over the wire to OpenAI-compatible servers and how their answers are read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.items.task import Response
from services.evaluator.providers.openai import chat
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.unit.evaluator.providers.openai.calls import ITEM, TASK, call, refusal
from touchstone.v1 import job_pb2
from touchstone.v1.endpoint_pb2 import Capabilities


@pytest.mark.parametrize(
    ("prices", "usage", "cost"),
    [
        ({}, {}, None),
        ({"input": 2.0, "output": 10.0}, {}, (5 * 2 + 2 * 10) / 1e6),
        ({}, {"cost": 0.25}, 0.25),
        ({}, {"cost": {"total_cost": 1}}, None),
        ({"input": 2.0, "output": 10.0}, {"prompt_tokens": 0, "completion_tokens": 0}, None),
    ],
)
async def test_an_answer_costs_what_is_configured_or_what_the_provider_says(
    prices: dict[str, float], usage: dict[str, Any], cost: float | None
) -> None:
    stub = OpenAIServer()
    stub.usage = usage
    assert (await call(stub, prices=prices)).cost_usd == (None if cost is None else pytest.approx(cost))


async def test_listed_prices_hold_where_none_is_configured() -> None:
    stub = OpenAIServer()
    stub.listed = {"pricing": {"prompt": "0.000002", "completion": "0.00001"}}
    assert (await call(stub)).cost_usd == pytest.approx((5 * 2 + 2 * 10) / 1e6)


async def test_reasoning_tokens_are_counted_apart() -> None:
    stub = OpenAIServer()
    stub.usage = {"completion_tokens": 90, "completion_tokens_details": {"reasoning_tokens": 80}}
    response = await call(stub)
    assert (response.output_tokens, response.reasoning_tokens) == (90, 80)


async def test_the_key_travels_as_a_bearer_token() -> None:
    stub = OpenAIServer()
    await call(stub, api_key_env="K", api_key="sk-1")
    assert stub.records[0].headers["Authorization"] == "Bearer sk-1"


async def test_an_answer_is_read_with_its_figures() -> None:
    stub = OpenAIServer(Behaviour(answer=lambda prompt: "Answer: positive"))
    response = await call(stub)
    assert response == Response(
        "Answer: positive",
        finish_reason="stop",
        input_tokens=5,
        output_tokens=2,
        served_model="stub",
        latency_ms=response.latency_ms,
        parameters='{"temperature":0}',
    )
    assert 0 < response.latency_ms < 5000


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
async def test_reasoning_is_kept_apart(key: str) -> None:
    stub = OpenAIServer(Behaviour(answer=lambda prompt: "yes"))
    stub.message = {key: "let me think"}
    response = await call(stub)
    assert (response.text, response.reasoning) == ("yes", "let me think")


@pytest.mark.parametrize("message", [{}, {"reasoning": "let me think"}, {"refusal": "I will not", "content": None}])
async def test_a_streamed_answer_is_the_same_answer_and_tells_its_first_token(message: dict[str, Any]) -> None:
    def stub() -> OpenAIServer:
        server = OpenAIServer(Behaviour(answer=lambda prompt: "Answer: it is positive", piece_s=0.02))
        server.message = message
        server.usage = {"completion_tokens_details": {"reasoning_tokens": 3}}
        return server

    whole, streamed = await call(stub()), await call(stub(), stream=True)
    # The third piece carries the first word; the first has a role only.
    assert 30 < streamed.ttft_ms < streamed.latency_ms
    assert whole.ttft_ms == 0
    same = replace(streamed, latency_ms=whole.latency_ms, ttft_ms=0.0, parameters=whole.parameters)
    assert same == whole


async def test_a_stream_that_ends_before_its_finish_is_retryable() -> None:
    error = await refusal(Fault("broken"), stream=True)
    assert error.retryable
    assert "cut an answer short" in error.message


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    class Whole(OpenAIServer):
        def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
            return None

    response = await call(Whole(Behaviour(answer=lambda prompt: "yes")), stream=True)
    assert (response.text, response.ttft_ms) == ("yes", 0)


async def test_an_error_within_a_stream_is_the_calls_failure() -> None:
    class Dying(OpenAIServer):
        def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
            begun = (super().events(request, body, text) or [])[:2]
            return [*begun, f"data: {json.dumps(self.error(Fault('500', message='engine died')))}\n\n"]

    with pytest.raises(ProviderError) as caught:
        await call(Dying(), stream=True)
    assert caught.value.retryable
    assert "engine died" in caught.value.message


async def test_an_answer_without_content_is_empty_text() -> None:
    stub = OpenAIServer()
    stub.message, stub.finish_reason = {"content": None}, "length"
    response = await call(stub)
    assert (response.text, response.finish_reason, response.refused) == ("", "length", False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("finish", ["error", "abort"])
async def test_an_answer_that_the_server_broke_off_is_a_failure_and_no_answer(finish: str, stream: bool) -> None:
    stub = OpenAIServer()
    stub.finish_reason = finish
    with pytest.raises(ProviderError, match="failed while answering") as caught:
        await call(stub, stream=stream)
    assert caught.value.retryable
    assert not caught.value.fatal


async def test_a_filtered_answer_is_refused() -> None:
    stub = OpenAIServer()
    stub.finish_reason = "content_filter"
    assert (await call(stub)).refused


async def test_models_are_listed_with_context_and_size() -> None:
    stub = OpenAIServer(Behaviour(models=("qwen2.5-7b-instruct", "other")), owned_by="vllm")
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url))
        listing = await provider.list_models()
        await provider.close()
    assert listing.server == "vLLM"
    assert [(m.model, m.context_length, m.parameters_b) for m in listing.models] == [
        ("qwen2.5-7b-instruct", 4096, 7.0),
        ("other", 4096, 0.0),
    ]


async def test_a_listed_model_carries_what_the_file_says_of_it() -> None:
    stub = OpenAIServer(Behaviour(models=("a", "b")))
    entry = ModelEntry("a", Capabilities(stop=False), 512, 3.0, "sha256:0f", {"input": 1.0, "output": 2.0})
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url, model_entries=(entry,)))
        a, b = (await provider.list_models()).models
        await provider.close()
    assert (a.context_length, a.parameters_b, a.digest, a.input_price, a.output_price) == (512, 3.0, "sha256:0f", 1, 2)
    assert a.capabilities == Capabilities(stop=False)
    assert (b.context_length, b.digest, b.HasField("input_price")) == (4096, "", False)


async def test_openais_own_service_has_a_limit_on_stop_sequences_and_lists_what_writes_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub = OpenAIServer(Behaviour(models=("gpt-4.1", "text-embedding-3-large", "gpt-4o-mini-tts", "whisper-1")))
    async with stub:
        monkeypatch.setattr(chat, "OPENAI_URL", stub.url)
        provider = OpenAIProvider(Endpoint("openai", "openai", stub.url))
        listing = await provider.list_models()
        item = replace(ITEM, stop=("a", "b", "c", "d", "e"))
        await provider.generate(Request("gpt-4.1", job_pb2.Sampling(max_tokens=8), TASK, item))
        await provider.close()
    assert [model.model for model in listing.models] == ["gpt-4.1"]
    body = stub.records[0].body
    assert (body["stop"], body["max_completion_tokens"]) == (["a", "b", "c", "d"], 8)


async def test_a_configured_list_of_models_replaces_the_servers() -> None:
    stub = OpenAIServer(Behaviour(models=("a", "b", "c")))
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url, models=("b", "mine")))
        listing = await provider.list_models()
        await provider.close()
    assert [(model.model, model.context_length) for model in listing.models] == [("b", 4096), ("mine", 0)]


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "text"}]},
        {"error": {"message": "engine died"}},
    ],
)
async def test_no_form_of_answer_crashes_the_reader(body: object) -> None:
    class Odd(OpenAIServer):
        def routes(self) -> list[web.RouteDef]:
            async def odd(request: web.Request) -> web.Response:
                return web.json_response(body)

            return [web.post("/v1/chat/completions", odd)]

    with pytest.raises(ProviderError) as caught:
        await call(Odd())
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("model", "refused"), [("llama-70b", True), ("llama-7b", False), ("mystery", False), ("mixtral-8x7b", True)]
)
async def test_a_model_beyond_the_limit_is_refused_before_any_call(model: str, refused: bool) -> None:
    stub = OpenAIServer(Behaviour(models=(model,)))
    if not refused:
        await call(stub, model=model, max_model_b=13.0)
        return
    with pytest.raises(ProviderError, match="takes at most 13"):
        await call(stub, model=model, max_model_b=13.0)
    assert stub.records == []
