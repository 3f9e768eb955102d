"""What vLLM has beside OpenAI's protocol."""

from __future__ import annotations

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message
from services.evaluator.providers.openai.vllm import VLLMProvider
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request
from tests.servers.stub import Behaviour
from tests.servers.vllm_server import VLLMServer
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("user", "one two three"),), "positive", "h", "p")


async def listing(stub: VLLMServer, path: str = "/v1") -> Listing:
    async with stub:
        provider = VLLMProvider(Endpoint("gpu", "vllm", stub.url.removesuffix("/v1") + path))
        try:
            return await provider.list_models()
        finally:
            await provider.close()


async def test_models_are_listed_with_context_and_the_servers_version() -> None:
    found = await listing(VLLMServer(Behaviour(models=("qwen2.5-7b",))))
    assert found.server == "vLLM 0.32.0"
    assert [(m.model, m.context_length, m.parameters_b) for m in found.models] == [("qwen2.5-7b", 4096, 7.0)]
    assert found.models[0].capabilities.loglikelihood


async def test_a_context_length_that_the_listing_lacks_is_the_tokenizers() -> None:
    stub = VLLMServer()
    stub.listed = {"max_model_len": None}
    assert (await listing(stub)).models[0].context_length == 2048


async def test_a_dead_engine_behind_a_living_server_is_told() -> None:
    stub = VLLMServer()
    stub.healthy = False
    with pytest.raises(ProviderError) as caught:
        await listing(stub)
    assert caught.value.message == "gpu answers, but its engine is not healthy. Restart vLLM and check its log."
    assert caught.value.unreachable


async def test_its_own_sampling_parameters_are_sent_without_asking_who_it_is() -> None:
    stub = VLLMServer()
    stub.owned_by = "someone"
    async with stub:
        provider = VLLMProvider(Endpoint("gpu", "vllm", stub.url))
        sampling = job_pb2.Sampling(top_k=20, repeat_penalty=1.5)
        await provider.generate(Request("stub", sampling, TASK, ITEM))
        await provider.close()
    body = stub.records[0].body
    assert (body["top_k"], body["repetition_penalty"]) == (20, 1.5)
    assert "temperature" not in body
