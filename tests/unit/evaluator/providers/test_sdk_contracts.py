"""The stub servers speak the wire that the providers' own clients speak, and our requests are those of the clients.

Clients are imported where they are used: each worker of pytest-xdist imports this file, and they take long.
"""

from __future__ import annotations

from typing import Any

import pytest

from services.evaluator import make_provider
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message
from services.evaluator.providers.protocol.provider import Request
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour, Fault, StubServer
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("system", "Be brief."), Message("user", "one two")), "positive", "h", "p", stop=("Q:",))
MESSAGES: Any = [{"role": "user", "content": "one two"}]


def behaviour(*models: str) -> Behaviour:
    return Behaviour(answer=lambda prompt: "Answer: yes", models=models)


async def our_body(server: StubServer, kind: str, model: str, sampling: job_pb2.Sampling) -> dict[str, Any]:
    provider = make_provider.provider(Endpoint(kind, kind, server.url))
    await provider.generate(Request(model, sampling, TASK, ITEM))
    await provider.close()
    return server.records[-1].body


async def test_ollamas_client_reads_the_stub() -> None:
    import ollama

    stub = OllamaServer(behaviour("a:1b", "b:2b"))
    stub.thinking = "let me"
    async with stub:
        client = ollama.AsyncClient(host=stub.url)
        assert [model.model for model in (await client.list()).models] == ["a:1b", "b:2b"]
        assert (await client.ps()).models[0].context_length == 4096
        assert ((await client.show("a:1b")).modelinfo or {})["stub.context_length"] == 32768
        answer = await client.chat(model="a:1b", messages=MESSAGES)
        assert (answer.message.content, answer.message.thinking, answer.done_reason) == (
            "Answer: yes",
            "let me",
            "stop",
        )
        assert (answer.prompt_eval_count, answer.eval_count) == (2, 2)
        pieces = [piece async for piece in await client.chat(model="a:1b", messages=MESSAGES, stream=True)]
        assert "".join(piece.message.content or "" for piece in pieces) == "Answer: yes"
        assert pieces[-1].done
        with pytest.raises(ollama.ResponseError) as caught:
            await client.chat(model="missing", messages=MESSAGES)
        assert caught.value.status_code == 404


async def test_our_request_to_ollama_is_its_clients_and_two_fields_more() -> None:
    import ollama

    options = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "num_predict": 64,
        "num_ctx": 8192,
        "seed": 7,
        "stop": ["Q:"],
    }
    sampling = job_pb2.Sampling(temperature=0.5, top_p=0.9, top_k=40, max_tokens=64, context_length=8192, seed=7)
    stub = OllamaServer(behaviour("a:1b"))
    async with stub:
        turns = [{"role": message.role, "content": message.content} for message in ITEM.messages]
        await ollama.AsyncClient(host=stub.url).chat(model="a:1b", messages=turns, options=options)
        theirs = stub.records[-1].body
        ours = await our_body(stub, "ollama", "a:1b", sampling)
    assert (ours.pop("truncate"), ours.pop("shift")) == (False, False)
    assert ours == {key: value for key, value in theirs.items() if value not in (None, [])}


async def test_anthropics_client_reads_the_stub() -> None:
    import anthropic

    stub = AnthropicServer(behaviour("claude-a", "claude-b", "claude-c"))
    stub.thinking = "let me"
    async with stub:
        client = anthropic.AsyncAnthropic(base_url=stub.url.removesuffix("/v1"), api_key="k", max_retries=0)
        assert [model.id async for model in client.models.list(limit=2)] == ["claude-a", "claude-b", "claude-c"]
        message = await client.messages.create(model="claude-a", max_tokens=64, messages=MESSAGES)
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 4)
        async with client.messages.stream(model="claude-a", max_tokens=64, messages=MESSAGES) as stream:
            streamed = await stream.get_final_message()
        assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in message.content]
        assert streamed.usage.output_tokens == 4


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("401"), "AuthenticationError"),
        (Fault("404", message="model: x"), "NotFoundError"),
        (Fault("429", retry_after="7"), "RateLimitError"),
        (Fault("529"), "APIStatusError"),
    ],
)
async def test_anthropics_client_knows_the_stubs_errors(fault: Fault, error: str) -> None:
    import anthropic

    stub = AnthropicServer(behaviour("claude-a"))
    stub.behaviour.always = fault
    async with stub:
        client = anthropic.AsyncAnthropic(base_url=stub.url.removesuffix("/v1"), api_key="k", max_retries=0)
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(model="claude-a", max_tokens=64, messages=MESSAGES)
    assert isinstance(caught.value, getattr(anthropic, error))
    assert caught.value.status_code == int(fault.kind)


async def test_our_request_to_anthropic_is_its_clients() -> None:
    import anthropic

    stub = AnthropicServer(behaviour("claude-opus-5-5"))
    async with stub:
        client = anthropic.AsyncAnthropic(base_url=stub.url.removesuffix("/v1"), api_key="k", max_retries=0)
        await client.messages.create(
            model="claude-opus-5-5",
            system="Be brief.",
            messages=MESSAGES,
            max_tokens=64,
            stop_sequences=["Q:"],
        )
        theirs = stub.records[-1].body
        ours = await our_body(stub, "anthropic", "claude-opus-5-5", job_pb2.Sampling(max_tokens=64))
    assert ours == theirs
