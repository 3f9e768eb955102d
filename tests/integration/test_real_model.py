"""A real language model behind a real OpenAI-compatible server, evaluated by the whole installation."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests import chat_lines
from tests.stack import Endpoint, Stack, running, until
from tests.tiny_model import server
from tests.tiny_model.server import ModelServer

pytestmark = pytest.mark.model

TASK = "sentiment"
ROWS = 5000


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    if not server.installed():
        pytest.skip("The small model's environment is not set up. Run: make model-env")
    model = ModelServer(server.train(tmp_path_factory.mktemp("model"), TASK))
    try:
        yield model.endpoint("tiny")
    finally:
        model.stop()


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    with running(Stack(tmp_path_factory.mktemp("stack"), [endpoint]), request) as stack:
        yield stack


def accuracy(stack: Stack, provider: str, model: str, **params: Any) -> dict[str, Any]:
    job_id = stack.run(provider, model, "demo", tasks=[TASK], **params)
    metric: dict[str, Any] = stack.completed(job_id, timeout_s=180)["performance_data"]["demo"][TASK]["accuracy"]
    return metric


def test_a_trained_model_is_seen_to_beat_chance_by_more_than_the_intervals(stack: Stack) -> None:
    trained = accuracy(stack, "tiny", server.MODEL, params={"temperature": 0.0, "num_predict": 16})
    chance = accuracy(stack, "baseline", "random")

    assert trained["mean"] >= 0.9
    assert trained["unparsed"] == 0
    assert trained["ci95"][0] > chance["ci95"][1]


def test_every_row_of_a_dataset_comes_back_once_from_a_real_model_though_an_evaluator_is_killed(
    stack: Stack, endpoint: Endpoint
) -> None:
    lines = chat_lines.lines(ROWS, server.MODEL, max_tokens=2)
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=60) as client:
        content = chat_lines.jsonl(lines)
        uploaded = client.post("/admin/datasets/upload", files={"file": ("batch_5k.jsonl", content)}).json()
        body = {"model_id": server.MODEL, "provider": "tiny", "dataset_id": uploaded["dataset_id"]}
        benchmark_id = client.post("/admin/benchmarks/run", json=body).json()["benchmark_id"]
        job_id = str(uuid.UUID(benchmark_id.removeprefix("bm_")))
        with stack.evaluator("second", [endpoint]) as second:
            until(lambda: stack.job(job_id).progress.items_done > ROWS // 4, 240)
            second.kill()
        stack.completed(job_id, 400)
        answer = json.loads(client.get(f"/admin/benchmarks/{benchmark_id}/results").text)
    assert Counter(row["custom_id"] for row in answer["results"]) == Counter(line["custom_id"] for line in lines)
    assert all(row["response"]["status_code"] == 200 for row in answer["results"])
    assert answer["throughput"] > 0
