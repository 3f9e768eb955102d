"""What a row asks for reaches the model as it stands in the file: every kind and route, by the bytes that arrive."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice, permutations
from typing import Any

import httpx
import pytest

from tests.servers.anthropic_server import AnthropicServer
from tests.servers.application_server import ApplicationServer
from tests.servers.gemini_batch_server import GeminiBatchServer
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import Behaviour, StubServer
from tests.servers.vllm_server import VLLMServer
from tests.stack import Endpoint, Stack, running
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

MODEL = "stub"
ROWS = 5_000
"""Each order of four keys two hundred times and more."""
KEYS = ("reasoning", "answer", "Zweifel ü", "10")
KINDS: Mapping[str, Callable[[Behaviour], StubServer]] = {
    "openai": OpenAIBatchServer,
    "vllm": VLLMServer,
    "grok": GrokServer,
    "gemini": GeminiBatchServer,
    "anthropic": AnthropicServer,
    "ollama": OllamaServer,
    "http": ApplicationServer,
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "parameters": {"type": "object", "required": ["b", "a"], "properties": {"b": {"type": "number"}, "a": {}}},
            "name": "look_up",
        },
    }
]


def schema(keys: tuple[str, ...]) -> dict[str, Any]:
    """With numbers that doubles do not keep: 1.0 beside 1, and one of more than 2^53."""
    types: list[dict[str, Any]] = [
        {"type": "string", "maxLength": 12345678901234567890},
        {"type": "number", "minimum": 1.0, "maximum": 10},
        {"minimum": 0, "type": "number"},
        {"enum": ["b", "a", None, True, 0.1]},
    ]
    return {"type": "object", "properties": dict(zip(keys, types, strict=True)), "required": [*keys]}


def request(keys: tuple[str, ...]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema(keys), "name": "it"}}}


def rows() -> list[tuple[str, dict[str, Any]]]:
    """The prompt and the further fields of each row."""
    orders = islice(cycle(permutations(KEYS)), ROWS)
    return [(f"Question {number}?", request(keys)) for number, keys in enumerate(orders)]


def batch_lines() -> bytes:
    lines = (
        {
            "custom_id": f"row-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": MODEL, **further, "messages": [{"role": "user", "content": prompt}]},
        }
        for number, (prompt, further) in enumerate(rows())
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def plain_lines() -> bytes:
    return b"".join(json.dumps({**further, "prompt": prompt}).encode() + b"\n" for prompt, further in rows())


def asked(raw: bytes) -> tuple[str, str]:
    """The prompt of a body, and its schema as JSON in the order in which it came, wherever the wire has it; a batch's
    line is a body too."""
    found: dict[str, str] = {}

    def look(value: Any) -> None:
        if isinstance(value, str) and value.startswith("Question "):
            found["prompt"] = value
        if isinstance(value, dict) and {"type", "properties", "required"} <= value.keys():
            found["schema"] = json.dumps(value)
        inside = [part for name, part in value.items() if name != "tools"] if isinstance(value, dict) else value
        for inner in inside if isinstance(inside, list) else ():
            look(inner)

    look(json.loads(raw))
    return found.get("prompt", ""), found.get("schema", "")


WANTED = Counter(
    (prompt, json.dumps(further["response_format"]["json_schema"]["schema"])) for prompt, further in rows()
)


class World:
    def __init__(self, stack: Stack, servers: Mapping[str, StubServer]) -> None:
        self.stack, self.servers = stack, servers
        self.http = httpx.Client(base_url=stack.url, trust_env=False, timeout=60)
        self._datasets: dict[str, str] = {}

    def dataset(self, name: str, content: Callable[[], bytes]) -> str:
        if name not in self._datasets:
            answer = self.http.post("/admin/datasets/upload", files={"file": (name, content())})
            assert answer.status_code == 200, answer.text
            self._datasets[name] = answer.json()["dataset_id"]
        return self._datasets[name]

    def run(self, dataset_id: str, endpoint: str, **body: Any) -> job_pb2.Job:
        named = {"dataset_id": dataset_id, "provider": endpoint, "model_id": "http" if endpoint == "http" else MODEL}
        answer = self.http.post("/admin/benchmarks/run", json=named | body)
        assert answer.status_code == 200, answer.text
        job = self.stack.wait(answer.json()["job_id"], 300)
        assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
        assert (job.progress.items_done, job.progress.items_failed) == (ROWS, 0)
        return job

    def arrived(self, kind: str) -> list[bytes]:
        """The bodies of questions since the last call."""
        server = self.servers[kind]
        raw, server.raw = server.raw or [], []
        return [body for body in raw if b"Question " in body]


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    environment = {"TOUCHSTONE_BATCH_POLL_S": "0.1", "TOUCHSTONE_BATCH_MOST_POLL_S": "0.3"}
    with stub_thread() as stubs:
        servers = {kind: stubs.start(server(Behaviour(models=(MODEL,)))) for kind, server in KINDS.items()}
        endpoints: list[Endpoint] = []
        for kind, server in servers.items():
            server.raw = []
            own: dict[str, Any] = {"name": kind, "kind": kind, "base_url": server.url, "concurrency": 8}
            if kind in ("openai", "vllm", "grok", "gemini", "anthropic"):
                own["api_key_env"] = "STUB_KEY"
            if kind == "http":
                own |= {"http.path": "/ask", "http.request.question": "{prompt}", "http.answer": "$.reply.text"}
            endpoints.append(own)
        chat: Endpoint = {**next(e for e in endpoints if e["kind"] == "grok"), "name": "grok-chat", "api": "chat"}
        stack = Stack(
            tmp_path_factory.mktemp("order"), [*endpoints, chat], environment=environment | {"STUB_KEY": "key"}
        )
        with running(stack, request):
            stack.know_models(*KINDS)
            yield World(stack, servers)


@pytest.mark.parametrize("endpoint", [*KINDS, "grok-chat"])
def test_a_live_call_asks_as_the_row_does(world: World, endpoint: str) -> None:
    world.run(world.dataset("rows.jsonl", batch_lines), endpoint)
    assert Counter(map(asked, world.arrived(endpoint.partition("-")[0]))) == WANTED


def test_a_streamed_call_of_a_plain_line_asks_as_the_row_does(world: World) -> None:
    world.run(world.dataset("plain.jsonl", plain_lines), "openai", stream=True)
    assert Counter(map(asked, world.arrived("openai"))) == WANTED


def test_a_batch_of_openai_asks_as_the_rows_do(world: World) -> None:
    server = world.servers["openai"]
    assert isinstance(server, OpenAIBatchServer)
    world.run(world.dataset("rows.jsonl", batch_lines), "openai", provider_batch=True)
    (batch,) = server.batches
    assert Counter(asked(json.dumps(line).encode()) for line in server.requests(batch)) == WANTED


def test_a_batch_of_gemini_asks_as_the_rows_do(world: World) -> None:
    world.arrived("gemini")
    world.run(world.dataset("rows.jsonl", batch_lines), "gemini", provider_batch=True)
    lines = [
        json.dumps(each).encode()
        for body in world.arrived("gemini")
        for each in json.loads(body)["batch"]["inputConfig"]["requests"]["requests"]
    ]
    assert Counter(map(asked, lines)) == WANTED


def test_openais_batches_here_ask_as_the_file_does_and_give_it_back(world: World) -> None:
    form = {"purpose": "batch"}
    file = world.http.post("/v1/files", data=form, files={"file": ("in.jsonl", batch_lines())}).json()["id"]
    body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    world.arrived("openai")
    made = world.http.post("/v1/batches", json=body | {"model": f"{MODEL}@openai"})
    assert made.status_code == 200, made.text
    back = world.http.get(f"/v1/files/{file}/content")
    assert Counter(map(asked, back.content.splitlines())) == WANTED
    ended = world.stack.wait(str(uuid.UUID(made.json()["id"].removeprefix("batch_"))), 300)
    assert ended.state == job_pb2.Job.STATE_COMPLETED, ended.reason
    assert Counter(map(asked, world.arrived("openai"))) == WANTED


def test_a_jobs_own_tools_keep_their_order_beside_those_of_rows(world: World) -> None:
    world.arrived("vllm")
    world.run(world.dataset("rows.jsonl", batch_lines), "vllm", custom_config={"tools": TOOLS, "top_logprob": 1.0})
    bodies = world.arrived("vllm")
    assert Counter(map(asked, bodies)) == WANTED
    assert {json.dumps(json.loads(body)["tools"]) for body in bodies} == {json.dumps(TOOLS)}
    assert all(b'"top_logprob":1.0' in body for body in bodies)
