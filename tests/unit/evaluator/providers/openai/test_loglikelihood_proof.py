"""A server is proved to give log-likelihoods."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from services.evaluator import make_provider
from services.evaluator.endpoints.endpoint import Endpoint, ModelEntry
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.servers.vllm_server import LIES, VLLMServer
from tests.unit.evaluator.providers.openai.loglikelihoods import CONTEXT, ITEM, PROOF_CALLS, TASK, refusal, score
from touchstone.v1 import endpoint_pb2, job_pb2


async def test_a_model_is_proved_once_however_many_ask_at_once() -> None:
    stub = VLLMServer()
    async with stub:
        provider = make_provider.provider(Endpoint("vllm-a", "vllm", stub.url))
        request = Request("stub", job_pb2.Sampling(), TASK, ITEM)
        await asyncio.gather(*(provider.loglikelihoods(request) for _ in range(8)))
        await provider.close()
    assert len(stub.records) == PROOF_CALLS + 8


SAYS = {
    "shifted": "echoed values differ from those of generation",
    "no echo": "the echoed tokens are not those of the prompt",
    "no log-probabilities": "it sends no log-probabilities for each prompt of a batch",
    "a first value": "the first token has a value although nothing precedes it",
    "a hole": "a token within the prompt has no value",
    "batch order": "values change with the order of a batch",
    "other temperature": "echoed values differ from those of generation",
    "alike": "echoed values differ from those of generation",
    "one prompt only": "it sends no log-probabilities for each prompt of a batch",
    "refuses": "it refuses to echo with log-probabilities (echo is not supported)",
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_server_that_answers_wrongly_is_refused_and_the_difference_named(lie: str) -> None:
    stub = VLLMServer()
    stub.lie = lie
    error = await refusal(stub)
    assert error.fatal
    assert error.message.startswith(f"The log-likelihoods of vllm-a cannot be trusted: {SAYS[lie]}")
    assert error.message.endswith("Run in generate mode, or use vLLM with prefix caching off.")
    assert not any(CONTEXT in record.body["prompt"] for record in stub.records)


@pytest.mark.parametrize(("noise", "proved"), [(0.1, True), (1.0, False)])
async def test_the_noise_of_other_kernels_passes_and_more_does_not(noise: float, proved: bool) -> None:
    stub = VLLMServer()
    stub.noise = noise
    if proved:
        await score(stub)
    else:
        assert "differ from those of generation" in (await refusal(stub)).message


async def test_a_server_without_completions_is_told_from_one_that_fails_the_proof() -> None:
    async with OpenAIServer() as stub:
        provider = make_provider.provider(Endpoint("llm", "openai", stub.url))
        with pytest.raises(ProviderError) as caught:
            await provider.loglikelihoods(Request("stub", job_pb2.Sampling(), TASK, ITEM))
        await provider.close()
    assert caught.value.fatal
    assert caught.value.message.startswith("llm does not return log-likelihoods of given texts.")


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
