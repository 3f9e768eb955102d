"""What goes over the wire to Ollama and how its answers are read."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour, Fault
from tests.unit.evaluator.providers.ollama_calls import ITEM, TASK, call
from touchstone.v1 import job_pb2


def item_of(words: int) -> Item:
    return replace(ITEM, messages=(Message("user", "word " * words),))


async def refusal(fault: Fault, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call(OllamaServer(Behaviour(faults=deque([fault]))), **changes)
    return caught.value


async def test_an_answer_is_read_with_its_figures() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "Answer: positive"))
    stub.thinking, stub.done_reason = "hm", "length"
    response = await call(stub)
    expected = Response("Answer: positive", "hm", "length", 3, 2, response.latency_ms, "stub")
    assert response == replace(expected, parameters=response.parameters)
    assert response.latency_ms > 0


async def test_a_streamed_answer_is_the_same_answer_and_tells_its_first_token() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "Answer: positive", piece_s=0.03))
    stub.thinking = "hm so"
    response = await call(stub, stream=True)
    assert stub.records[0].body["stream"] is True
    assert (response.text, response.reasoning) == ("Answer: positive", "hm so")
    assert (response.finish_reason, response.input_tokens, response.output_tokens) == ("stop", 3, 2)
    assert 25 < response.ttft_ms < response.latency_ms - 60


async def test_what_it_cost_is_told_where_prices_are_configured() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "Answer: positive"))
    assert (await call(stub, prices={"input": 1.0, "output": 2.0})).cost_usd == pytest.approx(7e-6)


async def test_a_prompt_that_does_not_fit_is_refused_by_the_server_and_becomes_the_items_outcome() -> None:
    stub = OllamaServer()
    response = await call(stub, job_pb2.Sampling(context_length=64), item_of(100))
    assert response.input_truncated
    assert response.text == ""


async def test_a_prompt_cut_by_an_old_server_is_noticed_by_its_count() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "yes"))
    stub.cuts = True
    assert (await call(stub, job_pb2.Sampling(context_length=64), item_of(100))).input_truncated


async def test_a_prompt_that_fits_is_not_called_cut() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "yes"))
    stub.cuts = True
    assert not (await call(stub, job_pb2.Sampling(context_length=64), item_of(60))).input_truncated


async def test_without_a_context_length_the_loaded_models_window_counts() -> None:
    stub = OllamaServer(Behaviour(answer=lambda prompt: "yes"))
    stub.cuts, stub.window = True, 64
    assert (await call(stub, item=item_of(100))).input_truncated


async def test_a_missing_model_is_fatal_with_the_command_that_gets_it() -> None:
    error = await refusal(Fault("404", message="model 'stub' not found"))
    assert error.fatal
    assert error.message == "ollama does not have model stub. Run `ollama pull stub` where it runs."


async def test_no_server_is_unreachable_with_the_command_that_starts_it() -> None:
    port = free_port()
    provider = OllamaProvider(Endpoint("ollama", "ollama", f"http://127.0.0.1:{port}"))
    with pytest.raises(ProviderError) as caught:
        await provider.generate(Request("stub", job_pb2.Sampling(), TASK, ITEM))
    await provider.close()
    assert caught.value.unreachable
    assert caught.value.message == f"ollama does not answer at 127.0.0.1:{port}. Start it with `ollama serve`."


async def test_a_full_queue_is_a_rate_limit() -> None:
    error = await refusal(Fault("503", message="server busy, maximum pending requests exceeded"))
    assert error.rate_limited
    assert error.retryable


async def test_too_little_memory_is_fatal() -> None:
    error = await refusal(Fault("500", message="model requires more system memory (9 GiB) than is available (3 GiB)"))
    assert error.fatal


@pytest.mark.parametrize("kind", ["500", "truncated", "empty", "reset"])
async def test_passing_failures_are_retryable(kind: str) -> None:
    error = await refusal(Fault(kind))
    assert error.retryable
    assert not error.fatal


async def test_models_are_listed_with_digest_size_and_context() -> None:
    stub = OllamaServer(Behaviour(models=("qwen2.5:7b",)))
    async with stub:
        provider = OllamaProvider(Endpoint("ollama", "ollama", stub.url))
        listing = await provider.list_models()
        await provider.close()
    assert listing.server == "Ollama 0.33.1"
    model = listing.models[0]
    assert (model.model, model.digest, model.quantization) == ("qwen2.5:7b", "sha256:qwen2.5:7b", "Q4_K_M")
    assert (model.parameters_b, model.context_length, model.disk_bytes) == (7.6, 32768, 4_700_000_000)
    assert model.memory_bytes == 6_100_000_000
    assert model.description == "Needs 6.1 GB of memory (as loaded now)."


async def test_memory_of_a_model_that_is_not_loaded_is_estimated_and_said_to_be() -> None:
    stub = OllamaServer()
    stub.in_memory = False
    async with stub:
        provider = OllamaProvider(Endpoint("ollama", "ollama", stub.url))
        model = (await provider.list_models()).models[0]
        await provider.close()
    assert model.memory_bytes == 5_640_000_000
    assert model.description == "Needs about 5.6 GB of memory (estimated from its file)."


async def test_log_likelihoods_are_refused() -> None:
    provider = OllamaProvider(Endpoint("ollama", "ollama", "http://127.0.0.1:9"))
    with pytest.raises(ProviderError) as caught:
        await provider.loglikelihoods(Request("stub", job_pb2.Sampling(), TASK, ITEM))
    assert caught.value.fatal


@pytest.mark.parametrize(("size", "refused"), [("70.6B", True), ("7.6B", False), ("270M", False)])
async def test_a_model_beyond_the_limit_is_refused_before_any_call(size: str, refused: bool) -> None:
    stub = OllamaServer()
    stub.parameter_size = size
    if refused:
        with pytest.raises(ProviderError) as caught:
            await call(stub, max_model_b=13.0)
        assert caught.value.message.startswith("stub has 70.6 billion parameters; ollama takes at most 13.")
        assert stub.records == []
    else:
        await call(stub, max_model_b=13.0)
