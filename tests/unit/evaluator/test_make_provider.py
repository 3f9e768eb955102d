"""What each kind of provider is sent of images, tools, results of tools and formats: the bytes on its wire, or the
refusal before the first call. A kind of a plug-in is in `plugins/test_process.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services import further_fields
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.endpoints.kinds import KINDS
from services.evaluator.items.task import Item, Message
from services.evaluator.make_provider import check_content, provider
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.engines import fake_options
from tests.pictures import PNG, data_uri
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.application_server import ApplicationServer
from tests.servers.gemini_server import GeminiServer
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, StubServer
from tests.servers.vllm_server import VLLMServer
from touchstone.v1 import job_pb2
from touchstone.v1.content_pb2 import ContentPart, Image, ToolCall
from touchstone.v1.dataset_pb2 import ChatMessage
from touchstone.v1.endpoint_pb2 import Capabilities

MODEL = "stub"
TASK = Catalogue(None).task("demo", "sentiment")
BYTES = data_uri(PNG).partition(",")[2]
PARAMETERS = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
FUNCTION = {"name": "weather", "description": "Tells it.", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}
FORMAT = {"type": "json_schema", "json_schema": {"name": "it", "schema": PARAMETERS}}
ARGUMENTS = '{"z":"C","a":"Lyon"}'
TEXT_ONLY = 'is sent only the text of messages. For images and tool calls, write "{messages}" into http.request'


@dataclass(frozen=True, slots=True)
class Content:
    messages: tuple[Message, ...]
    fields: Mapping[str, Any]


def _said(role: str, text: str, **more: Any) -> Message:
    return Message(role, text, ChatMessage(role=role, content=text, **more))


PICTURE = ContentPart(image=Image(media_type="image/png", data=PNG))
CONTENTS: Mapping[str, Content] = {
    "image": Content((_said("user", "What?", parts=[ContentPart(text="What?"), PICTURE]),), {}),
    "tools": Content((Message("user", "How is it?"),), {"tools": [TOOL]}),
    "result": Content(
        (
            Message("user", "How is it?"),
            _said("assistant", "", tool_calls=[ToolCall(id="c9", name="weather", arguments=ARGUMENTS)]),
            _said("tool", "Rain", tool_call_id="c9"),
        ),
        {"tools": [TOOL]},
    ),
    "format": Content((Message("user", "Name one."),), {"response_format": FORMAT}),
}

OPENAI = {
    "image": {"type": "image_url", "image_url": {"url": data_uri(PNG)}},
    "tools": TOOL,
    "result": {"role": "tool", "tool_call_id": "c9", "content": "Rain"},
    "format": FORMAT,
}
WIRES: Mapping[str, Mapping[str, Any]] = {
    "openai": OPENAI,
    "vllm": OPENAI,
    "grok-chat": OPENAI,
    "http": OPENAI,
    "engine": OPENAI,
    "grok": {
        "image": {"type": "input_image", "image_url": data_uri(PNG), "detail": "auto"},
        "tools": {"type": "function", **FUNCTION},
        "result": {"type": "function_call_output", "call_id": "c9", "output": "Rain"},
        "format": {"type": "json_schema", "name": "it", "schema": PARAMETERS},
    },
    "gemini": {
        "image": {"inlineData": {"mimeType": "image/png", "data": BYTES}},
        "tools": {"name": "weather", "description": "Tells it.", "parametersJsonSchema": PARAMETERS},
        "result": {"functionResponse": {"name": "weather", "response": {"output": "Rain"}}},
        "format": PARAMETERS,
    },
    "anthropic": {
        "image": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BYTES}},
        "tools": {"name": "weather", "description": "Tells it.", "input_schema": PARAMETERS},
        "result": {"type": "tool_result", "tool_use_id": "c9", "content": "Rain"},
        "format": {"type": "json_schema", "schema": PARAMETERS},
    },
    "ollama": {
        "image": {"role": "user", "content": "What?", "images": [BYTES]},
        "tools": TOOL,
        "result": {"role": "tool", "tool_name": "weather", "content": "Rain"},
        "format": PARAMETERS,
    },
    # Sends the text of messages alone; further fields go along.
    "http-text": {"image": TEXT_ONLY, "tools": "does not say where its tool calls are", "result": TEXT_ONLY}
    | {"format": FORMAT},
    # Calls nobody: its answers are drawn, or taken from references.
    "baseline": dict.fromkeys(CONTENTS),
}
"""By kind, or by kind and variant, what is somewhere in the body; a text is the refusal."""
SERVERS: Mapping[str, Callable[[Behaviour], StubServer]] = {
    "openai": OpenAIServer,
    "vllm": VLLMServer,
    "grok": GrokServer,
    "gemini": GeminiServer,
    "anthropic": AnthropicServer,
    "ollama": OllamaServer,
    "http": ApplicationServer,
}
HTTP: Mapping[str, Mapping[str, Any]] = {
    "http": {"request": {"messages": "{messages}"}, "tool_calls": "$.reply.calls"},
    "http-text": {"request": {"question": "{prompt}"}},
}


def test_every_kind_is_here() -> None:
    assert {name.partition("-")[0] for name in WIRES} == KINDS.keys()
    assert all(wire.keys() == CONTENTS.keys() for wire in WIRES.values())


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", WIRES)
async def test_what_a_row_holds_is_on_the_wire_or_refused_before_the_first_call(
    name: str, content: str, tmp_path: Path
) -> None:
    kind, asked = name.partition("-")[0], CONTENTS[content]
    expected = WIRES[name][content]
    async with AsyncExitStack() as opened:
        server = SERVERS[kind](Behaviour(models=(MODEL,))) if kind in SERVERS else None
        if server is not None:
            await opened.enter_async_context(server)
        endpoint = Endpoint(
            name,
            kind,
            server.url if server is not None else "",
            api="chat" if name == "grok-chat" else "responses",
            http=HttpOptions.read({"path": "/ask", "answer": "$.reply.text", **HTTP[name]}) if name in HTTP else None,
            engine=fake_options(tmp_path) if kind == "engine" else None,
        )
        if isinstance(expected, str):
            with pytest.raises(ProviderError, match=re.escape(expected)) as refusal:
                check_content(kind, endpoint, MODEL, Capabilities(), asked.messages, asked.fields)
            assert refusal.value.fatal
            return
        check_content(kind, endpoint, MODEL, Capabilities(), asked.messages, asked.fields)
        made = provider(endpoint)
        opened.push_async_callback(made.close)
        sampling = job_pb2.Sampling()
        further_fields.write(sampling, dict(asked.fields))
        item = Item(0, asked.messages, "positive", "h", "p")
        response = await made.generate(
            Request({"engine": "a", "baseline": "random", "http": name}.get(kind, MODEL), sampling, TASK, item)
        )
    assert response is not None
    if expected is None:
        assert server is None
        return
    body = server.records[-1].body if server is not None else json.loads(response.text)
    assert expected in _inside(body), json.dumps(body)
    # A schema keeps the order of its names, which tells a model what to write first.
    assert content not in ("tools", "format") or json.dumps(PARAMETERS) in json.dumps(body)
    assert content != "result" or "Lyon" in json.dumps(body)


def _inside(value: Any) -> Iterator[Any]:
    """The value and what is in it, at any depth."""
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _inside(inner)


@pytest.mark.parametrize(
    ("takes", "content", "why"),
    [
        (Capabilities(images=False), "image", "stub takes no images. Choose another model, or leave them out."),
        (Capabilities(tools=False), "tools", "stub calls no tools. Choose another model, or leave tools out."),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_takes_none_is_refused_whatever_its_kind(
    kind: str, takes: Capabilities, content: str, why: str
) -> None:
    asked = CONTENTS[content]
    with pytest.raises(ProviderError) as refusal:
        check_content(kind, Endpoint("e", kind), MODEL, takes, asked.messages, asked.fields)
    assert refusal.value.fatal
    assert str(refusal.value) == why
