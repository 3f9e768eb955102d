"""The Gemini stub speaks the wire that Google's client speaks, and our requests are its requests. Skipped without
google-genai, which brings 40 MB.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from services import further_fields
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item, Message
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.protocol.provider import Request
from tests.servers.gemini_server import GeminiServer, retry_info
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import job_pb2

genai: Any = pytest.importorskip("google.genai")
TASK = Catalogue(None).task("demo", "sentiment")
TURNS = (Message("system", "Be brief."), Message("user", "one"), Message("assistant", "two"), Message("user", "three"))
ITEM = Item(0, TURNS, "positive", "h", "p", stop=("Q:",))
MODEL = "gemini-2.0-flash"


def stub_of(*models: str) -> GeminiServer:
    return GeminiServer(Behaviour(answer=lambda prompt: "Answer: yes", models=models or (MODEL,)))


def client_of(stub: GeminiServer) -> Any:
    options = genai.types.HttpOptions(base_url=stub.url.removesuffix("/v1beta"), api_version="v1beta")
    return genai.Client(api_key="k", http_options=options).aio


def camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("_([a-z])", lambda found: found[1].upper(), key): camel(inner) for key, inner in value.items()}
    return [camel(inner) for inner in value] if isinstance(value, list) else value


async def test_googles_client_reads_the_stub() -> None:
    stub = stub_of(MODEL, "gemini-3.1-pro", "gemma-3-27b-it")
    stub.thought = "let me"
    async with stub:
        client = client_of(stub)
        listed = [model async for model in await client.models.list(config={"page_size": 2})]
        assert [model.name for model in listed if "generateContent" in model.supported_actions] == [
            f"models/{name}" for name in stub.behaviour.models
        ]
        answer = await client.models.generate_content(model=MODEL, contents="one two")
        assert (answer.text, answer.candidates[0].finish_reason.value, answer.model_version) == (
            "Answer: yes",
            "STOP",
            "stub-001",
        )
        assert answer.usage_metadata.thoughts_token_count == 2
        stream = await client.models.generate_content_stream(model=MODEL, contents="one two")
        assert "".join([piece.text or "" async for piece in stream]) == "Answer: yes"
        stub.blocked = "SAFETY"
        answer = await client.models.generate_content(model=MODEL, contents="one two")
        assert (answer.candidates, answer.prompt_feedback.block_reason.value) == (None, "SAFETY")


async def test_googles_client_knows_the_stubs_errors() -> None:
    stub = stub_of()
    stub.behaviour.faults.append(Fault("429", message="slow down", details=(retry_info("26s"),)))
    async with stub:
        client = client_of(stub)
        with pytest.raises(genai.errors.ClientError) as caught:
            await client.models.generate_content(model=MODEL, contents="one two")
    assert (caught.value.code, caught.value.status, caught.value.message) == (429, "RESOURCE_EXHAUSTED", "slow down")


async def test_our_request_to_gemini_is_its_clients() -> None:
    sampling = job_pb2.Sampling(temperature=0.5, top_p=0.9, top_k=40, max_tokens=64, seed=7)
    further_fields.write(sampling, {"thinkingBudget": 0})
    config = genai.types.GenerateContentConfig(
        system_instruction="Be brief.",
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        max_output_tokens=64,
        seed=7,
        stop_sequences=["Q:"],
        thinking_config=genai.types.ThinkingConfig(thinking_budget=0),
    )
    contents = [
        {"role": "model" if message.role == "assistant" else "user", "parts": [{"text": message.content}]}
        for message in TURNS[1:]
    ]
    stub = stub_of()
    async with stub:
        await client_of(stub).models.generate_content(model=MODEL, contents=contents, config=config)
        provider = GeminiProvider(Endpoint("gemini", "gemini", stub.url))
        await provider.generate(Request(MODEL, sampling, TASK, ITEM))
        await provider.close()
    theirs, ours = (record.body for record in stub.records)
    # The client gives the system's words a role, which is ignored, and writes inner names in snake case, which Google
    # reads alike.
    theirs["systemInstruction"].pop("role", None)
    assert ours == camel(theirs)
    assert stub.records[0].path == stub.records[1].path
