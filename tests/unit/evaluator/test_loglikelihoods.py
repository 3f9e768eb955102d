"""Log-likelihoods: what is asked and how it is cut, and that no server is believed that does not prove them."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from services import further
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.providers import registry
from services.evaluator.providers.base import ProviderError, Request
from services.evaluator.tasks.base import Item, Response
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.servers.vllm_server import LIES, VLLMServer, tokens_of, value
from touchstone.v1 import endpoint_pb2, job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
CONTEXT = "Review: a fine film.\nAnswer:"
ITEM = Item(0, (), "positive", "h", "p", context=CONTEXT, choices=(" positive", " not positive at all"))
PROOF_CALLS = 3


async def score(stub: VLLMServer, *items: Item, sampling: job_pb2.Sampling | None = None, **changes: Any) -> Response:
    """The items one after another through a provider of its own; the last response."""
    async with stub:
        provider = registry.provider(replace(Endpoint("vllm-a", "vllm", stub.url), **changes))
        try:
            for item in items or (ITEM,):
                response = await provider.loglikelihoods(Request("stub", sampling or job_pb2.Sampling(), TASK, item))
            return response
        finally:
            await provider.close()


async def refusal(stub: VLLMServer, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await score(stub, **changes)
    return caught.value


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


async def test_a_model_is_proved_once_however_many_ask_at_once() -> None:
    stub = VLLMServer()
    async with stub:
        provider = registry.provider(Endpoint("vllm-a", "vllm", stub.url))
        request = Request("stub", job_pb2.Sampling(), TASK, ITEM)
        await asyncio.gather(*(provider.loglikelihoods(request) for _ in range(8)))
        await provider.close()
    assert len(stub.records) == PROOF_CALLS + 8


SAYS = {
    "shifted": "echoed values are not those of generation",
    "no echo": "the echoed tokens are not those of the prompt",
    "no log-probabilities": "it sends no log-probabilities for each prompt of a batch",
    "a first value": "the first token has a value, which nothing precedes",
    "a hole": "a token within the prompt has no value",
    "batch order": "values change with the order of a batch",
    "other temperature": "echoed values are not those of generation",
    "alike": "echoed values are not those of generation",
    "one prompt only": "it sends no log-probabilities for each prompt of a batch",
    "refuses": "it refuses to echo with log-probabilities (echo is not supported)",
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_server_that_answers_wrongly_is_refused_and_the_difference_named(lie: str) -> None:
    stub = VLLMServer()
    stub.lie = lie
    error = await refusal(stub)
    assert error.fatal
    assert error.message.startswith(f"vllm-a does not prove its log-likelihoods: {SAYS[lie]}")
    assert error.message.endswith("Run in generate mode, or use vLLM with prefix caching off.")
    assert not any(CONTEXT in record.body["prompt"] for record in stub.records)


@pytest.mark.parametrize(("noise", "proved"), [(0.1, True), (1.0, False)])
async def test_the_noise_of_other_kernels_passes_and_more_does_not(noise: float, proved: bool) -> None:
    stub = VLLMServer()
    stub.noise = noise
    if proved:
        await score(stub)
    else:
        assert "not those of generation" in (await refusal(stub)).message


async def test_a_server_without_completions_is_told_from_one_that_fails_the_proof() -> None:
    async with OpenAIServer() as stub:
        provider = registry.provider(Endpoint("llm", "openai", stub.url))
        with pytest.raises(ProviderError) as caught:
            await provider.loglikelihoods(Request("stub", job_pb2.Sampling(), TASK, ITEM))
        await provider.close()
    assert caught.value.fatal
    assert caught.value.message.startswith("llm does not give log-likelihoods of given texts.")


async def test_a_model_that_is_said_to_have_none_is_not_called() -> None:
    stub = VLLMServer()
    entry = ModelEntry("stub", endpoint_pb2.Capabilities(loglikelihood=False))
    error = await refusal(stub, model_entries=(entry,))
    assert error.fatal
    assert stub.records == []


@pytest.mark.parametrize(
    ("fault", "retryable"), [(Fault("503"), True), (Fault("429", retry_after="2"), True), (Fault("401"), False)]
)
async def test_a_proof_that_the_server_does_not_answer_is_no_failed_proof(fault: Fault, retryable: bool) -> None:
    error = await refusal(VLLMServer(Behaviour(faults=deque([fault]))))
    assert error.retryable == retryable
    assert "prove" not in error.message


async def test_a_missing_model_is_named() -> None:
    error = await refusal(VLLMServer(Behaviour(models=("other",))))
    assert error.message == "vllm-a does not have model stub. Choose one that it lists."


async def test_a_prompt_that_does_not_fit_is_the_items_own_outcome() -> None:
    too_long = Fault("400", message="This model's maximum context length is 2048 tokens.")
    stub = VLLMServer(Behaviour(faults=deque()))
    async with stub:
        provider = registry.provider(Endpoint("vllm-a", "vllm", stub.url))
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
        provider = registry.provider(Endpoint("vllm-a", "vllm", stub.url))
        request = Request("stub", job_pb2.Sampling(), TASK, ITEM)
        await provider.loglikelihoods(request)
        stub.noise = math.nan
        with pytest.raises(ProviderError, match="gives no log-likelihood for the choice 'positive'") as caught:
            await provider.loglikelihoods(request)
        await provider.close()
    assert not caught.value.fatal


async def test_extra_fields_go_with_every_call() -> None:
    stub, sampling = VLLMServer(), job_pb2.Sampling(temperature=0.7)
    further.write(sampling, {"add_special_tokens": False})
    await score(stub, sampling=sampling)
    assert all(record.body["add_special_tokens"] is False for record in stub.records)
    assert all(record.body["temperature"] == 0 for record in stub.records)
