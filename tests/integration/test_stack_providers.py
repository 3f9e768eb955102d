"""What providers do wrong, seen from where a user stands: every kind of endpoint, through every process, over REST."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from services.evaluator.catalogue import Catalogue
from tests.oracle import answers, right
from tests.rows import write_mirror
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.application_server import ApplicationServer
from tests.servers.gemini_server import GeminiServer
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, StubServer, by_mapping
from tests.servers.vllm_server import VLLMServer
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import item_result_pb2, job_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

MODEL = "stub"
KEY = "sk-the-right-one-5d1c"
ROWS = 100
INFRASTRUCTURE = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
SERVERS: Mapping[str, Callable[[Behaviour], StubServer]] = {
    "openai": OpenAIServer,
    "vllm": VLLMServer,
    "grok": GrokServer,
    "gemini": GeminiServer,
    "anthropic": AnthropicServer,
    "ollama": OllamaServer,
    "http": ApplicationServer,
}
LABELS = {
    "openai": "OpenAI",
    "vllm": "vLLM",
    "grok": "Grok",
    "gemini": "Gemini",
    "anthropic": "Anthropic",
    "ollama": "Ollama",
    "http": "HTTP",
}
HTTP: Endpoint = {
    "http.path": "/ask",
    "http.request.question": "{prompt}",
    "http.answer": "$.reply.text",
    "http.headers.X-Key": "{key}",
}
KINDS = pytest.mark.parametrize("kind", list(SERVERS))
LIES: Mapping[str, Any] = {
    "an error": {"error": {"message": "The model is out of order.", "type": "server_error"}},
    "an error beside an answer": {
        "error": {"message": "The model is out of order."},
        "choices": [{"message": {"role": "assistant", "content": "Answer: positive"}, "finish_reason": "stop"}],
    },
    "no choices": {"choices": []},
    "an answer that broke off": {
        "choices": [{"message": {"role": "assistant", "content": "Answer: positive"}, "finish_reason": "error"}]
    },
    "a text": "Answer: positive",
}


class Lying(OpenAIServer):
    """Says 200 whatever is wrong. A model's name tells which lie it answers with."""

    def __init__(self) -> None:
        super().__init__(Behaviour(models=tuple(LIES)))

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(text=json.dumps(LIES[body["model"]]), content_type="application/json")


@dataclass
class World:
    """The stack, the honest server of each kind, and one that refuses some prompts."""

    stack: Stack
    servers: Mapping[str, StubServer]
    failing: OpenAIServer
    known: Mapping[str, str]
    """Prompt → right answer."""

    def failed(self, provider: str, model: str = MODEL) -> job_pb2.Job:
        """A job that must fail soon, with its reason in REST and nothing of it on the leaderboard."""
        return self.unscored(self.stack.run(provider, model, "glue", tasks=["sst2"]))

    def unscored(self, job_id: str) -> job_pb2.Job:
        job = self.stack.wait(job_id)
        assert job.state == job_pb2.Job.STATE_FAILED, job.progress
        # The list follows the job by a moment.
        until(lambda: (job_id, "failed") in {(r["job_id"], r["status"]) for r in self._listed()})
        result = self.stack.get(f"/results/{job.job_id}")
        assert (result["status"], result["error"]) == ("failed", job.reason)
        assert (result["performance_data"], "score" in result) == ({}, False)
        board = self.stack.get("/leaderboard", suite="glue", limit=100)
        assert job.job_id not in {row["job_id"] for row in (*board["leaderboard"], *board["not_ranked"])}
        return job

    def _listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stack.get("/results", limit=100)["results"]
        return found

    @cached_property
    def lies(self) -> Mapping[str, str]:
        """A job for each lie: they are in the queue together, as each waits for the endpoint to come to its senses."""
        return {lie: self.stack.run("lying", lie, "glue", tasks=["sst2"]) for lie in LIES}

    def at_rest(self, job_id: str) -> bool:
        """Whether nothing is asked of the failing server and the job's answers have arrived."""
        return not self.failing.in_flight and self.stack.settled(job_id)

    def answered(self, job_id: str) -> set[str]:
        """The stored prompts whose answer counts."""
        items = (item.result for item in self.stack.items(job_id))
        return {result.prompt for result in items if result.outcome == item_result_pb2.OUTCOME_ANSWERED}

    def outcomes(self, job_id: str) -> Counter[item_result_pb2.Outcome]:
        return Counter(item.result.outcome for item in self.stack.items(job_id))


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("providers")
    data_dir = write_mirror(folder / "data", {"sst2": ROWS})
    known = answers(Catalogue(data_dir), "glue", ["sst2"], right)
    with stub_thread() as stubs:
        servers = {
            kind: stubs.start(server(Behaviour(by_mapping(known), models=(MODEL,), api_key=KEY)))
            for kind, server in SERVERS.items()
        }
        failing = stubs.start(OpenAIServer(Behaviour(by_mapping(known))))
        lying = stubs.start(Lying())
        endpoints: list[Endpoint] = []
        for kind, server in servers.items():
            own = HTTP if kind == "http" else {}
            for name, variable in ((f"right-{kind}", "RIGHT_KEY"), (f"wrong-{kind}", "WRONG_KEY"), (kind, "UNSET_KEY")):
                called: Endpoint = {"name": name, "kind": kind, "base_url": server.url, "concurrency": 8}
                endpoints.append({**called, "api_key_env": variable, "exclusive": False, **own})
        endpoints += [
            {"name": "failing", "kind": "openai", "base_url": failing.url, "concurrency": 8},
            {"name": "lying", "kind": "openai", "base_url": lying.url, "concurrency": 8},
        ]
        environment = {"RIGHT_KEY": KEY, "WRONG_KEY": "sk-another", "TOUCHSTONE_FIRST_OUTAGE_S": "1"}
        with running(Stack(folder, endpoints, data_dir, environment=environment), request) as stack:
            yield World(stack, servers, failing, known)


@KINDS
def test_a_kind_without_its_key_is_refused_with_the_documents_text_and_not_called(world: World, kind: str) -> None:
    asked = len(world.servers[kind].records)
    detail = world.stack.refused(kind, MODEL, "glue", tasks=["sst2"])
    assert detail == f"AI provider error: API key not configured for {LABELS[kind]}"
    assert len(world.servers[kind].records) == asked


@KINDS
def test_a_kind_with_a_wrong_key_fails_at_once_naming_the_variable(world: World, kind: str) -> None:
    asked = len(world.servers[kind].records)
    name = f"wrong-{kind}"
    job = world.failed(name, name if kind == "http" else MODEL)
    assert job.reason.startswith(f"{name} refused the key (")
    assert job.reason.endswith("). Set WRONG_KEY where the evaluator runs and restart it.")
    assert job.finished_at.ToMilliseconds() - job.created_at.ToMilliseconds() < 10_000
    assert len(world.servers[kind].records) - asked <= 2 * 8, "a wrong key is not tried item by item"
    assert world.outcomes(job.job_id) == {}


@KINDS
def test_a_kind_with_its_key_runs_to_the_end(world: World, kind: str) -> None:
    name = f"right-{kind}"
    job_id = world.stack.run(name, name if kind == "http" else MODEL, "glue", tasks=["sst2"], limit=10)
    assert world.stack.completed(job_id)["performance_data"]["glue"]["sst2"]["accuracy"]["mean"] == 1.0


@pytest.mark.parametrize("lie", list(LIES))
def test_a_provider_that_says_200_to_a_failure_is_never_scored(world: World, lie: str) -> None:
    job = world.unscored(world.lies[lie])
    assert "lying" in job.reason
    scored = world.outcomes(job.job_id)
    assert set(scored) <= {INFRASTRUCTURE}, "no failed call is the model's answer"
    if lie.startswith("an error"):
        assert "The model is out of order." in job.reason


def test_up_to_the_share_of_failed_items_a_job_completes_incomplete_and_beyond_it_fails(world: World) -> None:
    bodies = []
    for failures in (5, 6):
        # Not the first ones: an endpoint that refuses whatever it is asked fails the job at once.
        refused = dict.fromkeys(list(world.known)[10::7][:failures], Fault("400", message="a strange character"))
        known: dict[str, str | Fault] = {**world.known, **refused}
        world.failing.behaviour.answer = known.__getitem__
        job_id = world.stack.run("failing", MODEL, "glue", tasks=["sst2"])
        world.stack.wait(job_id)
        # One that fails before its last call has answers under way.
        until(partial(world.at_rest, job_id))
        bodies.append((world.stack.job(job_id), world.stack.get(f"/results/{job_id}")))
    (first, kept), (second, lost) = bodies
    assert (first.state, first.incomplete) == (job_pb2.Job.STATE_COMPLETED, True)
    assert kept["outcomes"]["infrastructure_error"] == {"items": 5, "share": 0.05}
    assert kept["performance_data"]["glue"]["sst2"]["accuracy"]["n"] == ROWS - 5
    assert kept["performance_data"]["glue"]["sst2"]["accuracy"]["bounds"] == [0.95, 1.0]
    assert kept["not_ranked_reason"] == "5 items have no answer"

    assert (second.state, lost["status"]) == (job_pb2.Job.STATE_FAILED, "failed")
    assert "more than 5%" in second.reason
    assert world.outcomes(second.job_id)[INFRASTRUCTURE] == 6
    kept = world.answered(second.job_id)
    assert kept
    # What was answered is kept, and a retry asks for the rest alone.
    world.failing.behaviour.answer = by_mapping(world.known)
    asked = len(world.failing.records)
    request = scheduler_service_pb2.RetryJobRequest(job_id=second.job_id)
    world.stack.scheduler.RetryJob(request, timeout=10)
    assert world.stack.wait(second.job_id).state == job_pb2.Job.STATE_COMPLETED
    again = Counter(f"user:\n{record.body['messages'][-1]['content']}" for record in world.failing.records[asked:])
    assert not kept & again.keys()
    assert set(again.values()) == {1}
    assert len(world.answered(second.job_id)) == ROWS
    assert world.stack.get(f"/results/{second.job_id}")["performance_data"]["glue"]["sst2"]["accuracy"]["n"] == ROWS
