"""A real language model behind a real OpenAI-compatible server, evaluated by the whole installation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.stack import Stack, running
from tests.tiny_model import server
from tests.tiny_model.server import ModelServer

pytestmark = pytest.mark.model

TASK = "sentiment"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    if not server.installed():
        pytest.skip("The small model's environment is not set up. Run: make model-env")
    folder = tmp_path_factory.mktemp("model")
    model = ModelServer(server.train(folder, TASK))
    try:
        with running(Stack(folder / "stack", [model.endpoint("tiny")]), request) as stack:
            yield stack
    finally:
        model.stop()


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
