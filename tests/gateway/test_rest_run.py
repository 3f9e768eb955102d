"""POST /run: the document's body, what it refuses, what reaches the scheduler."""

from __future__ import annotations

import asyncio
import copy
import uuid
from typing import Any

import pytest

from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2

BASE = "/api/v1/benchmarking"
DOCUMENT: dict[str, Any] = {
    "project_id": 1,
    "suite": "glue",
    "config": {
        "provider": "ollama",
        "model": "mistral:latest",
        "ollama_params": {"temperature": 0.1, "top_p": 0.9},
    },
}


def body(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(DOCUMENT) | changes


def config(**changes: Any) -> dict[str, Any]:
    return body(config=DOCUMENT["config"] | changes)


async def test_the_documents_body_starts_a_job_that_is_found_at_once(gateway: Running) -> None:
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT)
    assert answer.status_code == 200
    started = answer.json()
    # Nothing is known of the model yet, so no duration is made up.
    assert set(started) == {"job_id", "message"}
    assert str(uuid.UUID(started["job_id"])) == started["job_id"]
    assert started["message"] == "Benchmarking started for suite: glue"
    found = await gateway.client.get(f"{BASE}/results/{started['job_id']}")
    assert (found.status_code, found.json()["status"]) == (200, "pending")


async def test_every_parameter_reaches_the_scheduler(gateway: Running) -> None:
    params = {
        "temperature": 0.1,
        "top_p": 0.9,
        "top_k": 40,
        "num_predict": 64,
        "num_ctx": 2048,
        "seed": 42,
        "repeat_penalty": 1.1,
    }
    sent = config(ollama_params=params) | {"tasks": ["sst2", "cola"], "limit": 50, "priority": "low", "project_id": 7}
    assert (await gateway.client.post(f"{BASE}/run", json=sent)).status_code == 200
    got = gateway.world.specs[0]
    assert got.sampling == job_pb2.Sampling(
        temperature=0.1,
        top_p=0.9,
        top_k=40,
        max_tokens=64,
        context_length=2048,
        seed=42,
        repeat_penalty=1.1,
    )
    assert (got.endpoint, got.model, got.project_id) == ("ollama", "mistral:latest", 7)
    assert (got.suite.suite, list(got.suite.tasks), got.suite.limit) == ("glue", ["sst2", "cola"], 50)
    assert got.priority == job_pb2.PRIORITY_LOW


async def test_absent_parameters_are_not_sent_and_priority_is_high(gateway: Running) -> None:
    sent = body(config={"provider": "baseline", "model": "majority"})
    del sent["suite"]
    assert (await gateway.client.post(f"{BASE}/run", json=sent)).status_code == 200
    got = gateway.world.specs[0]
    assert got.sampling == job_pb2.Sampling()
    assert got.priority == job_pb2.PRIORITY_HIGH
    assert (got.endpoint, got.suite.suite) == ("baselines", "glue")


async def test_other_providers_take_params_and_custom_json(gateway: Running) -> None:
    chosen = {
        "provider": "vllm-a",
        "model": "qwen2.5:32b",
        "params": {"temperature": 0},
        "custom_config": {"reasoning_effort": "low", "nested": {"n": 1, "b": 1.0, "a": 12345678901234567890}},
    }
    assert (await gateway.client.post(f"{BASE}/run", json=body(config=chosen))).status_code == 200
    got = gateway.world.specs[0].sampling
    assert got.HasField("temperature")
    assert got.extra_json == '{"reasoning_effort":"low","nested":{"n":1,"b":1.0,"a":12345678901234567890}}'


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"suite": "glue", "config": DOCUMENT["config"]}, 422, "project_id is required."),
    (body(project_id="1"), 422, "project_id must be a whole number."),
    (body(project_id=True), 422, "project_id must be a whole number."),
    (body(project_id=1.5), 422, "project_id must be a whole number."),
    (body(project_id=-1), 422, "project_id must be between 0"),
    ({"project_id": 1}, 422, "config is required."),
    (body(config=[]), 422, "config must be an object."),
    (body(config={"provider": "ollama"}), 422, "config.model is required."),
    (config(model=""), 422, "config.model must not be empty."),
    (config(model=3), 422, "config.model must be a string."),
    (config(ollama_params=[]), 422, "config.ollama_params must be an object."),
    (config(ollama_params={"top_k": 140}), 422, "config.ollama_params.top_k must be between 0 and 100."),
    (config(ollama_params={"top_k": 40.0}), 422, "top_k must be a whole number."),
    (config(ollama_params={"temperature": -0.1}), 422, "temperature must be between 0 and 2."),
    (config(ollama_params={"temperature": 2.1}), 422, "temperature must be between 0 and 2."),
    (config(ollama_params={"top_p": 1.1}), 422, "top_p must be between 0 and 1."),
    (config(ollama_params={"num_predict": 0}), 422, "num_predict must be between 1 and 1,000,000."),
    (config(ollama_params={"num_predict": 1_000_001}), 422, "num_predict must be between 1 and 1,000,000."),
    (config(ollama_params={"num_ctx": 10_000_001}), 422, "num_ctx must be between 1 and 10,000,000."),
    (config(ollama_params={"seed": True}), 422, "seed must be a whole number."),
    (config(ollama_params={"repeat_penalty": 3}), 422, "repeat_penalty must be between 0 and 2."),
    (config(ollama_params={"tempature": 1}), 422, "Allowed: temperature, top_p, top_k"),
    (config(params={"seed": 1}), 422, "not both"),
    (config(custom_config={"logprobs": 5}), 422, "config.custom_config.logprobs asks for log-probabilities"),
    (config(custom_config={"messages": []}), 422, "config.custom_config.messages is set by Touchstone itself"),
    (config(api_key="x"), 422, "config.api_key is not known."),
    (body(limit=0), 422, "limit must be between 1"),
    (body(tasks=["nope"]), 422, "glue has no task 'nope'. Its tasks: cola"),
    (body(tasks="sst2"), 422, "tasks must be a list."),
    (body(priority="urgent"), 422, "urgent is not a valid priority. Use one of: low, normal, high."),
    (body(suit="glue"), 422, "suit is not known."),
    (body(suite="nope"), 400, "Invalid benchmark suite. Supported: glue, demo"),
    (body(suite="superglue"), 400, "Invalid benchmark suite. Supported: glue, demo"),
    (body(suite=7), 422, "suite must be a string."),
    (config(provider="mistral"), 400, "Unknown provider 'mistral'. Endpoints here: gemini, ollama, vllm-a"),
    (config(provider="openai"), 400, "Several endpoints are of kind openai: gemini, vllm-a, grok."),
    (body(budget_usd=5), 400, "Set max_tokens."),
]


@pytest.mark.parametrize(("sent", "status", "words"), WRONG)
async def test_wrong_requests_are_refused_with_what_is_wrong(
    gateway: Running, sent: dict[str, Any], status: int, words: str
) -> None:
    answer = await gateway.client.post(f"{BASE}/run", json=sent)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
    assert gateway.world.jobs == {}


@pytest.mark.parametrize("raw", [b"{", b"[]", b"", b'{"project_id": NaN}', b"\xff", b"[" * 100_000, b'"\\ud800"'])
async def test_bodies_that_are_no_json_object_are_refused(gateway: Running, raw: bytes) -> None:
    answer = await gateway.client.post(f"{BASE}/run", content=raw)
    assert answer.status_code in (400, 422)
    assert isinstance(answer.json()["detail"], str)


async def test_a_body_above_the_cap_is_413_stated_or_streamed(gateway: Running) -> None:
    async def chunks() -> Any:
        for _ in range(40):
            yield b" " * 65536

    for content in (b" " * 2_000_000, chunks()):
        answer = await gateway.client.post(f"{BASE}/run", content=content)
        assert answer.status_code == 413
        assert "1024 KiB" in answer.json()["detail"]


async def test_a_full_queue_is_429_with_the_documents_text(gateway: Running) -> None:
    for _ in range(10):
        assert (await gateway.client.post(f"{BASE}/run", json=DOCUMENT)).status_code == 200
    answer = await gateway.client.post(f"{BASE}/run", json=DOCUMENT)
    assert answer.status_code == 429
    assert answer.json() == {"detail": "Queue is full. Please try again later.", "retry_after": 300}
    assert answer.headers["retry-after"] == "300"


async def test_a_repeated_request_id_makes_one_job(gateway: Running) -> None:
    sent = body(request_id="once")
    answers = await asyncio.gather(*(gateway.client.post(f"{BASE}/run", json=sent) for _ in range(5)))
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert len(gateway.world.jobs) == 1


async def test_the_estimate_follows_an_earlier_run_of_the_model(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("mistral:latest", "demo"), "local").job_id, ago_s=1390)
    world.finish(job.job_id)
    answer = await gateway.client.post(f"{BASE}/run", json=body(suite="demo"))
    assert answer.json()["estimated_duration"] == "17-35 minutes"
