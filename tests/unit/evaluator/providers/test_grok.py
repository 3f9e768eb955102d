"""What goes over the wire to xAI, over both of its APIs, and how its answers, costs and errors are read."""

from __future__ import annotations

import json

import pytest

from services import further_fields
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.grok import GrokProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.grok_server import GrokServer
from tests.servers.stub import Behaviour, Fault
from tests.unit.evaluator.providers.grok_calls import APIS, ITEM, PLAIN, TASK, THINKING, call, refusal, stub_of
from touchstone.v1 import endpoint_pb2, job_pb2


def effort(value: str) -> job_pb2.Sampling:
    sampling = job_pb2.Sampling()
    further_fields.write(sampling, {"reasoning_effort": value})
    return sampling


async def test_responses_are_asked_for_without_being_kept() -> None:
    stub = stub_of()
    response = await call(stub, job_pb2.Sampling(temperature=0.5, top_p=0.9, max_tokens=16))
    record = stub.records[0]
    assert record.path == "/v1/responses"
    assert record.body == {
        "model": PLAIN,
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one two three"}],
        "store": False,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 16,
    }
    assert json.loads(response.parameters) == {
        key: value for key, value in record.body.items() if key not in ("model", "input")
    }


async def test_the_switch_asks_the_chat_api_instead() -> None:
    stub = stub_of()
    await call(stub, job_pb2.Sampling(temperature=0.5, max_tokens=16, seed=3), api="chat")
    record = stub.records[0]
    assert record.path == "/v1/chat/completions"
    assert record.body.keys() - {"model", "messages"} == {"temperature", "max_completion_tokens", "seed", "stop"}


@APIS
async def test_without_a_told_cost_the_listed_prices_hold(api: str) -> None:
    stub = stub_of()
    stub.ticks = None
    assert (await call(stub, api=api, max_model_b=1000)).cost_usd == pytest.approx((5 * 2 + 2 * 10) / 1e6)


@APIS
async def test_a_configured_price_comes_before_the_told_cost(api: str) -> None:
    prices = {"input": 1.0, "output": 1.0}
    assert (await call(stub_of(), api=api, prices=prices)).cost_usd == pytest.approx(7 / 1e6)


@APIS
async def test_a_thinking_model_is_left_its_own_sampling_and_gets_no_stop_sequences(api: str) -> None:
    stub = stub_of()
    await call(stub, model=THINKING, api=api)
    assert not stub.records[0].body.keys() & {"temperature", "stop"}


async def test_a_seed_is_refused_where_the_api_has_none() -> None:
    stub = stub_of()
    with pytest.raises(ProviderError) as caught:
        await call(stub, job_pb2.Sampling(seed=1))
    assert caught.value.fatal
    assert "does not take seed" in caught.value.message
    assert stub.records == []


@APIS
async def test_the_effort_stands_where_each_api_reads_it(api: str) -> None:
    stub = stub_of()
    await call(stub, effort("high"), model=THINKING, api=api)
    body = stub.records[0].body
    assert body.get("reasoning_effort", body.get("reasoning")) == ("high" if api == "chat" else {"effort": "high"})


@pytest.mark.parametrize(("listed", "words"), [(["low", "high"], "Choose one of low, high."), (None, "Leave it out.")])
async def test_an_effort_that_the_model_does_not_list_is_refused_before_any_call(
    listed: list[str] | None, words: str
) -> None:
    stub = stub_of()
    stub.listed |= {"capabilities": {"reasoning_effort": listed} if listed else {}}
    with pytest.raises(ProviderError) as caught:
        await call(stub, effort("minimal"), model=THINKING)
    assert caught.value.fatal
    assert caught.value.message == f"{THINKING} does not take reasoning_effort 'minimal'. {words}"
    assert stub.records == []


async def test_models_are_listed_under_every_name_with_prices_and_context() -> None:
    stub = GrokServer(Behaviour(models=("grok-4.3",)))
    stub.listed |= {"aliases": ["grok-4.3-latest"], "capabilities": {"default_reasoning_effort": "low"}}
    async with stub:
        provider = GrokProvider(Endpoint("grok", "grok", stub.url))
        listing = await provider.list_models()
        await provider.close()
    model, alias = listing.models
    assert (model.model, alias.model, alias.description) == ("grok-4.3", "grok-4.3-latest", "Now grok-4.3.")
    for found in listing.models:
        assert (found.input_price, found.output_price, found.context_length) == (2.0, 10.0, 256000)
        assert found.capabilities == endpoint_pb2.Capabilities(
            greedy=False, reasoning=True, stop=False, loglikelihood=False, images=False
        )


@APIS
async def test_a_wrong_key_is_told_though_it_comes_as_a_bad_request(api: str) -> None:
    stub = stub_of()
    stub.behaviour.api_key = "right"
    with pytest.raises(ProviderError) as caught:
        await call(stub, api=api, api_key_env="XAI_API_KEY", api_key="wrong")
    assert caught.value.fatal
    assert caught.value.message.startswith("grok refused the key (Incorrect API key provided")
    assert caught.value.message.endswith("). Set XAI_API_KEY where the evaluator runs and restart it.")


@APIS
@pytest.mark.parametrize("status", ["429", "403"])
async def test_exhausted_credit_is_fatal_and_a_rate_limit_is_not(api: str, status: str) -> None:
    spent = "Your team has either used all available credits or reached its monthly spending limit."
    error = await refusal(Fault(status, message=spent, code="resource-exhausted"), api=api)
    assert error.fatal
    assert "the quota is used up" in error.message
    limited = await refusal(Fault("429", message="Too many requests", retry_after="3"), api=api)
    assert (limited.rate_limited, limited.retry_after_s) == (True, 3)


async def test_a_prompt_against_the_rules_is_the_items_own_outcome() -> None:
    blocked = Fault("403", message="Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO.")
    response = await call(stub_of(blocked))
    assert response.refused
    assert response.parameters


async def test_a_prompt_that_does_not_fit_is_the_items_own_outcome() -> None:
    long = Fault("400", message="This model's maximum prompt length is 131072 but the request contains 200000 tokens.")
    assert (await call(stub_of(long))).input_truncated


async def test_there_are_no_log_likelihoods() -> None:
    stub = stub_of()
    async with stub:
        provider = GrokProvider(Endpoint("grok", "grok", stub.url))
        with pytest.raises(ProviderError, match="does not return log-likelihoods"):
            await provider.loglikelihoods(Request(PLAIN, job_pb2.Sampling(), TASK, ITEM))
        await provider.close()
