"""Rows with images and tools, from the file to every wire and back: what arrives, what is stored, what is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.pictures import PNG, data_uri, image
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.application_server import ApplicationServer
from tests.servers.gemini_batch_server import GeminiBatchServer
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import ARGUMENTS, Behaviour, StubServer
from tests.servers.vllm_server import VLLMServer
from tests.stack import API, Endpoint, Stack, running
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

MODEL = "stub"
KINDS: Mapping[str, Callable[[Behaviour], StubServer]] = {
    "openai": OpenAIBatchServer,
    "vllm": VLLMServer,
    "grok": GrokServer,
    "gemini": GeminiBatchServer,
    "anthropic": AnthropicServer,
    "ollama": OllamaServer,
    "http": ApplicationServer,
}
PARAMETERS = {"type": "object", "properties": {"unit": {"type": "string"}, "city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": PARAMETERS}}]
SCHEMA = {"type": "object", "properties": {"z": {"type": "number"}, "a": {"type": "string"}}}
CALL = {"id": "call_9", "type": "function", "function": {"name": "weather", "arguments": '{"unit":"C","city":"Lyon"}'}}
ROWS: Mapping[str, dict[str, Any]] = {
    "picture": {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, image()]}]},
    "offer": {"messages": [{"role": "user", "content": "How is it in Rome?"}], "tools": TOOLS},
    "result": {
        "messages": [
            {"role": "user", "content": "How is it in Lyon?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_9", "content": "Rain"},
        ],
        "tools": TOOLS,
    },
    "schema": {
        "messages": [{"role": "user", "content": "Name one."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}},
    },
}
PROBABLE = {"messages": [{"role": "user", "content": "How sure?"}], "logprobs": True}
LINES = b"".join(
    json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}).encode() + b"\n"
    for name, body in ROWS.items()
)


class World:
    def __init__(self, stack: Stack, servers: Mapping[str, StubServer]) -> None:
        self.stack, self.servers = stack, servers
        self.http = httpx.Client(base_url=stack.url, trust_env=False, timeout=60)
        self.dataset = self.upload(LINES)

    def upload(self, content: bytes) -> str:
        answer = self.http.post("/admin/datasets/upload", files={"file": ("rows.jsonl", content)})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["dataset_id"])

    def start(self, endpoint: str, dataset: str = "", **body: Any) -> job_pb2.Job:
        named = {"dataset_id": dataset or self.dataset, "provider": endpoint}
        named["model_id"] = endpoint if endpoint.startswith("http") else MODEL
        answer = self.http.post("/admin/benchmarks/run", json=named | body)
        assert answer.status_code == 200, answer.text
        return self.stack.wait(answer.json()["job_id"], 60)

    def run(self, endpoint: str, **body: Any) -> dict[str, dict[str, Any]]:
        """The items by their rows' ids."""
        job = self.start(endpoint, **body)
        assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
        assert (job.progress.items_done, job.progress.items_failed) == (len(ROWS), 0)
        return {
            name: self.http.get(f"{API}/results/{job.job_id}/items/rows/{number}").json() | {"job": job.job_id}
            for number, name in enumerate(ROWS)
        }

    def asked(self, kind: str) -> dict[str, dict[str, Any]]:
        """The bodies since the last call, by what tells the rows apart."""
        records, self.servers[kind].records = self.servers[kind].records, []
        told = {"What is this?": "picture", "Rome": "offer", "Lyon": "result", "Name one.": "schema"}
        found: dict[str, dict[str, Any]] = {}
        for record in records:
            text = json.dumps(record.body)
            found[next(name for word, name in told.items() if word in text)] = record.body
        return found


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with stub_thread() as stubs:
        servers = {kind: stubs.start(server(Behaviour(models=(MODEL,)))) for kind, server in KINDS.items()}
        grok = servers["grok"]
        assert isinstance(grok, GrokServer)
        grok.listed["input_modalities"] = ["text", "image"]
        endpoints: list[Endpoint] = []
        for kind, server in servers.items():
            own: dict[str, Any] = {"name": kind, "kind": kind, "base_url": server.url, "concurrency": 4}
            if kind in ("openai", "vllm", "grok", "gemini", "anthropic"):
                own["api_key_env"] = "STUB_KEY"
            if kind == "http":
                own |= {"http.path": "/ask", "http.request.messages": "{messages}", "http.answer": "$.reply.text"}
                endpoints.append({**own, "name": "http-text", "http.request.messages": "{prompt}"})
                own["http.tool_calls"] = "$.reply.calls"
            endpoints.append(own)
        grok_chat: Endpoint = {**next(e for e in endpoints if e["kind"] == "grok"), "name": "grok-chat", "api": "chat"}
        stack = Stack(
            tmp_path_factory.mktemp("messages"),
            [*endpoints, grok_chat],
            environment={"STUB_KEY": "key", "TOUCHSTONE_BATCH_POLL_S": "0.1", "TOUCHSTONE_BATCH_MOST_POLL_S": "0.3"},
        )
        with running(stack, request):
            stack.know_models(*KINDS)
            yield World(stack, servers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", [*KINDS, "grok-chat"])
def test_a_models_calls_are_stored_and_shown_whatever_the_wire(world: World, endpoint: str, stream: bool) -> None:
    items = world.run(endpoint, stream=stream)

    (call,) = items["offer"]["tool_calls"]
    assert (call["type"], call["function"]) == ("function", {"name": "weather", "arguments": ARGUMENTS})
    assert items["offer"]["outcome"] == "answered"
    assert items["offer"]["prediction"] == 'weather({"city": "Rom", "days": 2})'
    assert "tool_calls" not in items["result"]
    assert items["result"]["response"] == "no answer"
    assert items["result"]["messages"] == ROWS["result"]["messages"]
    assert items["picture"]["messages"][0]["content"][1]["media_type"] == "image/png"
    assert items["schema"]["messages"] is None
    page = world.http.get(f"/jobs/{items['picture']['job']}/items/rows/0").text
    assert f'<img src="{data_uri()}"' in page
    page = world.http.get(f"/jobs/{items['picture']['job']}/items/rows/1").text
    assert "&#34;city&#34;: &#34;Rom&#34;" in page


@pytest.mark.parametrize("endpoint", ["openai", "vllm", "grok-chat"])
def test_chat_completions_are_asked_as_the_row_is(world: World, endpoint: str) -> None:
    kind = endpoint.partition("-")[0]
    world.asked(kind)
    world.run(endpoint)
    asked = world.asked(kind)
    for name, body in ROWS.items():
        assert {key: asked[name][key] for key in body} == body
        further = body.keys() - {"messages"}
        assert {json.dumps(asked[name][key]) for key in further} == {json.dumps(body[key]) for key in further}


def test_anthropic_is_asked_in_its_own_form(world: World) -> None:
    world.run("anthropic")
    asked = world.asked("anthropic")
    text, picture = asked["picture"]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": data_uri().partition(",")[2]}
    (tool,) = asked["offer"]["tools"]
    assert (tool["name"], json.dumps(tool["input_schema"])) == ("weather", json.dumps(PARAMETERS))
    assert asked["result"]["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_9", "name": "weather", "input": {"unit": "C", "city": "Lyon"}}
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_9", "content": "Rain"}]},
    ]
    assert json.dumps(asked["schema"]["output_config"]["format"]["schema"]) == json.dumps(SCHEMA)


def test_gemini_is_asked_in_its_own_form(world: World) -> None:
    world.run("gemini")
    asked = world.asked("gemini")
    assert asked["picture"]["contents"][0]["parts"][1]["inlineData"]["mimeType"] == "image/png"
    (tool,) = asked["offer"]["tools"]
    (declared,) = tool["functionDeclarations"]
    assert json.dumps(declared["parametersJsonSchema"]) == json.dumps(PARAMETERS)
    assert [content["parts"] for content in asked["result"]["contents"][1:]] == [
        [{"functionCall": {"name": "weather", "args": {"unit": "C", "city": "Lyon"}}}],
        [{"functionResponse": {"name": "weather", "response": {"output": "Rain"}}}],
    ]
    config = asked["schema"]["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert json.dumps(config["responseJsonSchema"]) == json.dumps(SCHEMA)


def test_ollama_is_asked_in_its_own_form(world: World) -> None:
    world.run("ollama")
    asked = world.asked("ollama")
    assert asked["picture"]["messages"] == [
        {"role": "user", "content": "What is this?", "images": [data_uri().partition(",")[2]]}
    ]
    assert json.dumps(asked["offer"]["tools"]) == json.dumps(TOOLS)
    called, result = asked["result"]["messages"][1:]
    assert called["tool_calls"] == [{"function": {"name": "weather", "arguments": {"unit": "C", "city": "Lyon"}}}]
    assert (result["role"], result["tool_name"], result["content"]) == ("tool", "weather", "Rain")
    assert json.dumps(asked["schema"]["format"]) == json.dumps(SCHEMA)


def test_xais_responses_are_asked_in_their_own_form(world: World) -> None:
    world.run("grok")
    asked = world.asked("grok")
    text, picture = asked["picture"]["input"][0]["content"]
    assert text == {"type": "input_text", "text": "What is this?"}
    assert picture == {"type": "input_image", "image_url": data_uri(), "detail": "auto"}
    (tool,) = asked["offer"]["tools"]
    assert (tool["type"], tool["name"], json.dumps(tool["parameters"])) == (
        "function",
        "weather",
        json.dumps(PARAMETERS),
    )
    assert asked["result"]["input"][1:] == [
        {"type": "function_call", "call_id": "call_9", **CALL["function"]},  # type: ignore[dict-item]
        {"type": "function_call_output", "call_id": "call_9", "output": "Rain"},
    ]
    assert json.dumps(asked["schema"]["text"]["format"]["schema"]) == json.dumps(SCHEMA)


@pytest.mark.parametrize("endpoint", ["openai", "gemini"])
def test_a_providers_batch_asks_and_answers_as_single_calls_do(world: World, endpoint: str) -> None:
    items = world.run(endpoint, provider_batch=True)
    assert items["offer"]["tool_calls"][0]["function"] == {"name": "weather", "arguments": ARGUMENTS}
    assert items["result"]["response"] == "no answer"
    server = world.servers[endpoint]
    if isinstance(server, OpenAIBatchServer):
        asked = [request["body"]["messages"] for request in server.requests(list(server.batches)[-1])]
        assert all(body["messages"] in asked for body in ROWS.values())


def line(**body: Any) -> bytes:
    return json.dumps({"custom_id": "odd", "messages": ROWS["offer"]["messages"], **body}).encode()


@pytest.mark.parametrize(
    ("endpoint", "content", "reason"),
    [
        ("http-text", LINES, "http-text is sent only the text of messages."),
        ("http-text", line(tools=TOOLS), "http-text does not say where its tool calls are. Set http.tool_calls"),
        ("ollama", line(tools=TOOLS, tool_choice="required"), "Ollama has no tool_choice but auto."),
        ("gemini", line(tools=TOOLS, parallel_tool_calls=False), "Gemini has no parallel_tool_calls false."),
        ("anthropic", json.dumps(PROBABLE).encode(), "Anthropic's API has no log-probabilities."),
        ("grok", json.dumps(PROBABLE).encode(), 'has no log-probabilities. Use an endpoint with api = "chat".'),
        ("http", json.dumps(PROBABLE).encode(), "http has no log-probabilities. Leave it out."),
        ("anthropic", line(response_format={"type": "json_object"}), "response_format json_object. Use json_schema."),
        (
            "anthropic",
            line(messages=ROWS["result"]["messages"]),
            "takes messages with tool calls only together with tools. Add them.",
        ),
    ],
)
def test_what_a_wire_has_no_form_for_fails_the_job_before_the_first_call(
    world: World, endpoint: str, content: bytes, reason: str
) -> None:
    kind = endpoint.partition("-")[0]
    world.asked(kind)
    job = world.start(endpoint, world.upload(content))
    assert job.state == job_pb2.Job.STATE_FAILED
    assert job.reason.startswith("Row 1 of rows.jsonl (")
    assert reason in job.reason
    assert not world.servers[kind].records


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["openai", "vllm", "grok-chat", "ollama", "gemini"])
def test_log_probabilities_are_stored_where_the_wire_has_them(world: World, endpoint: str, stream: bool) -> None:
    top = {"top_logprobs": 2} if endpoint in ("openai", "vllm") else {}
    job = world.start(endpoint, world.upload(json.dumps(PROBABLE | top).encode()), stream=stream)
    assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
    found = world.http.get(f"{API}/results/{job.job_id}/items/rows/0").json()["logprobs"]
    assert [one["token"].strip() for one in found] == ["no", "answer"]
    assert [one["logprob"] for one in found] == [-0.5, -0.5]
    if top:
        assert [other["token"].strip() for other in found[0]["top_logprobs"]] == ["no0", "no1"]


def test_exports_and_searches_have_the_calls(world: World) -> None:
    items = world.run("openai")
    job_id = items["offer"]["job"]
    found = world.http.get(f"{API}/results/{job_id}/items", params={"query": 'weather({"city": "rom"'}).json()["items"]
    assert [one["custom_id"] for one in found] == ["offer"]
    asked = world.http.get(f"{API}/results/{job_id}/items", params={"query": "image/png, "}).json()["items"]
    assert [one["custom_id"] for one in asked] == ["picture"]
    output = world.http.get(f"{API}/results/{job_id}/export", params={"kind": "batch"})
    assert output.status_code == 200, output.text
    lines = {one["custom_id"]: one for one in map(json.loads, output.text.splitlines())}
    choice = lines["offer"]["response"]["body"]["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "weather", "arguments": ARGUMENTS}


def test_the_files_content_is_what_was_uploaded(world: World) -> None:
    file = world.http.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", LINES)}).json()["id"]
    back = world.http.get(f"/v1/files/{file}/content").text.splitlines()
    assert [json.loads(one)["body"] for one in back] == list(ROWS.values())
    assert len(PNG) < 100


def test_a_golden_answer_to_an_image_is_exported_with_it_and_uploaded_again(world: World) -> None:
    picture = world.run("openai")["picture"]
    path = f"{API}/results/{picture['job']}"
    assert world.http.put(f"{path}/items/rows/0/annotation", json={"verdict": "golden"}).status_code == 200
    file = world.http.get(f"{path}/export", params={"kind": "golden"})
    assert "Touchstone-Left-Out" not in file.headers
    (example,) = [json.loads(line) for line in file.text.splitlines()]
    assert example["messages"][:-1] == ROWS["picture"]["messages"]
    sent = {"file": ("golden.jsonl", file.content)}
    again = world.http.post("/admin/datasets/upload", files=sent, data={"last_assistant": "reference"})
    assert (again.status_code, again.json()["rows_with_reference"]) == (200, 1), again.text
