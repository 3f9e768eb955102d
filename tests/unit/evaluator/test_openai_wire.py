"""What goes over the wire to OpenAI-compatible servers and how their answers are read."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from services import further
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.providers import openai
from services.evaluator.providers.base import ProviderError, Request
from services.evaluator.providers.openai import OpenAIProvider
from services.evaluator.tasks.base import Item, Message, Response
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2
from touchstone.v1.endpoint_pb2 import Capabilities

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two three")), "positive", "h", "p")


async def call(
    stub: OpenAIServer,
    sampling: job_pb2.Sampling | None = None,
    model: str = "stub",
    item: Item = ITEM,
    repeat: int = 0,
    repeats: int = 1,
    stream: bool = False,
    **changes: Any,
) -> Response:
    """One call to the stub through a provider of its own."""
    async with stub:
        provider = OpenAIProvider(replace(Endpoint("vllm-a", "openai", stub.url), **changes))
        request = Request(model, sampling or job_pb2.Sampling(), TASK, item, repeat, stream, repeats)
        try:
            return await provider.generate(request)
        finally:
            await provider.close()


def sampling_of(field: str, value: float) -> job_pb2.Sampling:
    """One parameter, and a temperature so that no other is added."""
    sampling = job_pb2.Sampling(temperature=0.5)
    setattr(sampling, field, value)
    return sampling


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(OpenAIServer(Behaviour(faults=deque([fault]))), **changes)
    return caught.value


async def test_without_sampling_the_model_is_asked_for_its_likeliest_answer() -> None:
    stub = OpenAIServer()
    await call(stub)
    assert stub.records[0].path == "/v1/chat/completions"
    assert stub.records[0].body == {
        "model": "stub",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one two three"}],
        "temperature": 0,
    }


async def test_what_was_sent_beside_the_messages_is_recorded() -> None:
    stub, item = OpenAIServer(), replace(ITEM, stop=("\n\n", "Q:"))
    sampling = job_pb2.Sampling(max_tokens=16, seed=7)
    further.write(sampling, {"user": "u"})
    response = await call(stub, sampling, item=item, repeat=2, repeats=3, stream=True)
    sent = {key: value for key, value in stub.records[0].body.items() if key not in ("model", "messages")}
    assert json.loads(response.parameters) == sent
    assert sent == {
        "max_tokens": 16,
        "seed": 9,
        "stop": ["\n\n", "Q:"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": "u",
    }
    assert response.parameters == json.dumps(sent, sort_keys=True, separators=(",", ":"))


async def test_several_answers_an_item_are_left_to_the_models_own_temperature() -> None:
    stub = OpenAIServer()
    await call(stub, repeats=3)
    assert "temperature" not in stub.records[0].body


async def test_repeats_with_a_seed_have_each_their_own() -> None:
    stub = OpenAIServer()
    async with stub:
        provider = OpenAIProvider(Endpoint("vllm-a", "openai", stub.url))
        sampling = job_pb2.Sampling(seed=5, temperature=1)
        for repeat in (0, 1, 2, 1):
            await provider.generate(Request("stub", sampling, TASK, ITEM, repeat, repeats=3))
        await provider.close()
    assert [record.body["seed"] for record in stub.records] == [5, 6, 7, 6]


@pytest.mark.parametrize(
    ("capabilities", "sent"),
    [
        (Capabilities(), True),
        (Capabilities(stop=True), True),
        (Capabilities(stop=False), False),
        (Capabilities(reasoning=True), False),
    ],
)
async def test_stop_sequences_go_to_models_that_take_them_and_do_not_think(
    capabilities: Capabilities, sent: bool
) -> None:
    stub, item = OpenAIServer(), replace(ITEM, stop=("a", "b", "c", "d", "e"))
    response = await call(stub, item=item, model_entries=(ModelEntry("*", capabilities),))
    assert stub.records[0].body.get("stop") == (["a", "b", "c", "d", "e"] if sent else None)
    assert ("stop" in response.parameters) == sent


async def test_a_model_that_fixes_its_sampling_is_asked_without_and_with_the_limit_it_knows() -> None:
    stub = OpenAIServer(Behaviour(models=("o4-mini",)))
    await call(stub, job_pb2.Sampling(max_tokens=100), model="o4-mini", item=replace(ITEM, stop=("\n",)))
    assert set(stub.records[0].body) == {"model", "messages", "max_completion_tokens"}


async def test_a_parameter_that_the_model_refuses_fails_before_any_call() -> None:
    stub = OpenAIServer(Behaviour(models=("o4-mini",)))
    with pytest.raises(ProviderError) as caught:
        await call(stub, job_pb2.Sampling(temperature=0.5), model="o4-mini")
    assert caught.value.fatal
    assert caught.value.message == "o4-mini does not take temperature. Leave it out of the job's parameters."
    assert stub.records == []


async def test_what_a_listing_says_of_parameters_is_heeded() -> None:
    stub = OpenAIServer()
    stub.listed = {"supported_parameters": ["max_tokens", "seed"], "context_length": 1024}
    await call(stub, item=replace(ITEM, stop=("\n",)))
    assert set(stub.records[0].body) == {"model", "messages"}


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


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("temperature", 0, "temperature"),
        ("temperature", 1.5, "temperature"),
        ("top_p", 0.9, "top_p"),
        ("max_tokens", 16, "max_tokens"),
        ("seed", 0, "seed"),
        ("seed", 2**40, "seed"),
    ],
)
async def test_each_parameter_is_sent_when_it_is_set(field: str, value: float, key: str) -> None:
    stub = OpenAIServer()
    await call(stub, sampling_of(field, value))
    assert stub.records[0].body[key] == value
    assert set(stub.records[0].body) == {"model", "messages", "temperature", key}


@pytest.mark.parametrize(
    ("owner", "field", "key"),
    [
        ("vllm", "top_k", "top_k"),
        ("vllm", "repeat_penalty", "repetition_penalty"),
        ("llamacpp", "top_k", "top_k"),
        ("llamacpp", "repeat_penalty", "repeat_penalty"),
    ],
)
async def test_servers_known_to_take_more_get_more(owner: str, field: str, key: str) -> None:
    stub = OpenAIServer(owned_by=owner)
    await call(stub, sampling_of(field, 2))
    assert stub.records[0].body[key] == 2


@pytest.mark.parametrize("field", ["top_k", "repeat_penalty", "context_length"])
async def test_a_parameter_that_cannot_be_sent_is_refused_and_not_dropped(field: str) -> None:
    stub = OpenAIServer()
    with pytest.raises(ProviderError) as caught:
        await call(stub, sampling_of(field, 1))
    assert caught.value.fatal
    assert caught.value.message == f"vllm-a does not take {field}. Leave it out of the job's parameters."
    assert stub.records == []


async def test_extra_is_merged_into_the_body_as_it_is() -> None:
    stub = OpenAIServer()
    sampling = job_pb2.Sampling()
    further.write(sampling, {"top_k": 5, "stop": ["\n"], "chat_template_kwargs": {"thinking": False}})
    await call(stub, sampling)
    body = stub.records[0].body
    assert (body["top_k"], body["stop"], body["chat_template_kwargs"]) == (5, ["\n"], {"thinking": False})
    assert isinstance(body["top_k"], int)


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
    assert error.message == "vllm-a refused the key. Set VLLM_KEY where the evaluator runs and restart it."


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
    assert error.message == f"vllm-a failed with status {status}: busy. Look at its log or status page, then retry."


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
        monkeypatch.setattr(openai, "OPENAI_URL", stub.url)
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
