"""OpenAI's own client reads our stubs: they say what the protocol means, not what our reader happens to take.

The client is imported where it is used: each worker of pytest-xdist imports this file, and it takes long.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.servers.grok_server import GrokServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.servers.vllm_server import VLLMServer


def client(stub: OpenAIServer) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=stub.url, api_key="k", max_retries=0)


async def test_chat_completions_whole_and_streamed() -> None:
    stub = OpenAIServer(Behaviour(answer=lambda prompt: "Answer: positive"))
    stub.usage = {"completion_tokens_details": {"reasoning_tokens": 1}}
    messages = [{"role": "user", "content": "one two"}]
    async with stub, client(stub) as sdk:
        whole = await sdk.chat.completions.create(model="stub", messages=messages)
        stream = await sdk.chat.completions.create(
            model="stub", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert whole.choices[0].message.content == "Answer: positive"
    assert whole.choices[0].finish_reason == "stop"
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens_details.reasoning_tokens) == (2, 1)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Answer: positive"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


async def test_completions_with_echo() -> None:
    async with VLLMServer() as stub, client(stub) as sdk:
        echoed = await sdk.completions.create(
            model="stub", prompt=["one two", "three"], echo=True, logprobs=1, max_tokens=0, temperature=0
        )
    first = next(choice for choice in echoed.choices if choice.index == 0)
    assert first.text == "one two"
    assert first.logprobs.tokens == ["one", " two"]
    assert first.logprobs.token_logprobs[0] is None
    assert first.logprobs.token_logprobs[1] < 0
    assert " two" in first.logprobs.top_logprobs[1]


async def test_models_and_errors() -> None:
    import openai

    stub = OpenAIServer(Behaviour(models=("a", "b"), api_key="right"))
    async with stub:
        async with client(stub) as sdk:
            with pytest.raises(openai.AuthenticationError):
                await sdk.models.list()
        async with client(stub).with_options(api_key="right") as sdk:
            assert [model.id async for model in sdk.models.list()] == ["a", "b"]
            with pytest.raises(openai.NotFoundError) as caught:
                await sdk.chat.completions.create(model="c", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "model_not_found"


async def test_responses_whole_and_streamed() -> None:
    stub = GrokServer(Behaviour(answer=lambda prompt: "Answer: positive"))
    stub.reasoning = "let me think"
    async with stub, client(stub) as sdk:
        whole = await sdk.responses.create(model="stub", input=[{"role": "user", "content": "one two"}], store=False)
        stream = await sdk.responses.create(
            model="stub", input=[{"role": "user", "content": "one two"}], store=False, stream=True
        )
        events = [event async for event in stream]
    assert whole.output_text == "Answer: positive"
    assert whole.output[0].summary[0].text == "let me think"
    assert (whole.usage.input_tokens, whole.usage.output_tokens_details.reasoning_tokens) == (2, 3)
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Answer: positive"
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Answer: positive"
