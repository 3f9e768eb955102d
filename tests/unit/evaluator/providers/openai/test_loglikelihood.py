"""Log-likelihoods: what is asked and how it is cut, and that no server is believed that does not prove them."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import pytest

from services import further_fields
from services.evaluator import make_provider
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.stub import Behaviour, Fault
from tests.servers.vllm_server import VLLMServer, tokens_of, value
from tests.unit.evaluator.providers.openai.loglikelihoods import CONTEXT, ITEM, PROOF_CALLS, TASK, refusal, score
from touchstone.v1 import job_pb2


def expected(context: str, choice: str) -> float:
    whole, start = tokens_of(context + choice), len(tokens_of(context.rstrip()))
    return math.fsum(value(whole[:place], whole[place]) for place in range(start, len(whole)))


async def test_choices_are_scored_as_continuations_of_the_context_in_one_call() -> None:
    stub = VLLMServer()
    response = await score(stub)
    assert [choice.text for choice in response.continuations] == [" positive", " not positive at all"]
    assert [choice.tokens for choice in response.continuations] == [1, 4]
    for choice in response.continuations:
        assert choice.loglikelihood == pytest.approx(expected(CONTEXT, choice.text), abs=1e-12)
    record = stub.records[PROOF_CALLS]
    assert record.path == "/v1/completions"
    assert record.body == {
        "model": "stub",
        "prompt": [CONTEXT, f"{CONTEXT} positive", f"{CONTEXT} not positive at all"],
        "echo": True,
        "logprobs": 1,
        "max_tokens": 0,
        "temperature": 0,
    }
    assert response.parameters == '{"echo":true,"logprobs":1,"max_tokens":0,"temperature":0}'
    assert response.input_tokens
    assert response.latency_ms > 0
    assert response.served_model == "stub"


async def test_a_space_at_the_end_of_the_context_goes_with_the_choice() -> None:
    stub = VLLMServer()
    response = await score(stub, replace(ITEM, context="Answer: ", choices=("yes",)))
    assert stub.records[PROOF_CALLS].body["prompt"] == ["Answer:", "Answer: yes"]
    assert response.continuations[0].loglikelihood == pytest.approx(expected("Answer: ", "yes"), abs=1e-12)


async def test_a_choice_is_greedy_when_each_of_its_tokens_was_the_likeliest() -> None:
    words = ("Rome", "seven", "was", "one", "the", "green", "nobody", "hundred", "quick", "paper", "low", "tide")
    best = max(words, key=lambda word: value(tokens_of(CONTEXT), f" {word}"))
    other = "Rome" if best != "Rome" else "tide"
    response = await score(VLLMServer(), replace(ITEM, choices=(f" {best}", f" {other}")))
    assert [choice.greedy for choice in response.continuations] == [True, False]


async def test_a_bos_token_before_every_prompt_changes_no_cut() -> None:
    stub = VLLMServer()
    stub.bos = True
    assert [choice.tokens for choice in (await score(stub)).continuations] == [1, 4]


@pytest.mark.parametrize("careless", [True, False])
async def test_a_server_that_must_write_a_token_has_it_dropped(careless: bool) -> None:
    stub = VLLMServer()
    stub.default_tokens, stub.least_tokens = careless, 0 if careless else 1
    response = await score(stub)
    assert stub.records[-1].body["max_tokens"] == 1
    assert [choice.tokens for choice in response.continuations] == [1, 4]
    assert response.continuations[0].loglikelihood == pytest.approx(expected(CONTEXT, " positive"), abs=1e-12)


async def test_a_missing_model_is_named() -> None:
    error = await refusal(VLLMServer(Behaviour(models=("other",))))
    assert error.message == "vllm-a does not have model stub. Choose one that it lists."


async def test_a_prompt_that_does_not_fit_is_the_items_own_outcome() -> None:
    too_long = Fault("400", message="This model's maximum context length is 2048 tokens.")
    stub = VLLMServer(Behaviour(faults=deque()))
    async with stub:
        provider = make_provider.provider(Endpoint("vllm-a", "vllm", stub.url))
        request = Request("stub", job_pb2.Sampling(), TASK, ITEM)
        await provider.loglikelihoods(request)
        stub.behaviour.faults.append(too_long)
        response = await provider.loglikelihoods(request)
        await provider.close()
    assert response.input_truncated
    assert response.continuations == ()
    assert response.parameters


async def test_a_choice_without_tokens_of_its_own_is_an_error_and_not_the_likeliest() -> None:
    with pytest.raises(ProviderError) as caught:
        await score(VLLMServer(), ITEM, replace(ITEM, choices=(" positive", "")))
    assert not caught.value.fatal


async def test_a_value_that_is_no_number_is_an_error_and_no_answer_of_the_model() -> None:
    stub = VLLMServer()
    async with stub:
        provider = make_provider.provider(Endpoint("vllm-a", "vllm", stub.url))
        request = Request("stub", job_pb2.Sampling(), TASK, ITEM)
        await provider.loglikelihoods(request)
        stub.noise = math.nan
        with pytest.raises(ProviderError, match="returned no log-likelihood for the choice 'positive'") as caught:
            await provider.loglikelihoods(request)
        await provider.close()
    assert not caught.value.fatal


async def test_extra_fields_go_with_every_call() -> None:
    stub, sampling = VLLMServer(), job_pb2.Sampling(temperature=0.7)
    further_fields.write(sampling, {"add_special_tokens": False})
    await score(stub, sampling=sampling)
    assert all(record.body["add_special_tokens"] is False for record in stub.records)
    assert all(record.body["temperature"] == 0 for record in stub.records)
