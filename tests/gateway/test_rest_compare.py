"""`POST /compare` over fake services: what is sent on, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import comparison_pb2, job_pb2, suite_pb2

URL = "/api/v1/benchmarking/compare"


def done(gateway: Running, model: str) -> job_pb2.Job:
    world = gateway.world
    return world.finish(world.start(world.add(spec(model, "demo"), "local").job_id).job_id)


async def compare(gateway: Running, *models: str, **body: Any) -> dict[str, Any]:
    answer = await gateway.client.post(URL, json={"model_ids": models, "benchmark_suite": "demo", **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["comparison"]
    return found


def asked_suite(gateway: Running) -> str:
    request = gateway.world.asked[-1]
    assert isinstance(request, comparison_pb2.CompareRequest)
    return request.suite


async def test_the_documents_fields_follow_from_the_runs(gateway: Running) -> None:
    for model in ("qwen2.5:7b", "gemma3:4b", "phi4-mini"):
        done(gateway, model)
    found = await compare(gateway, "qwen2.5:7b", "gemma3:4b", "phi4-mini", metrics=["accuracy"])
    scores = {one["subject"]: one["scores"]["accuracy"]["mean"] for one in found["models"]}
    assert sorted(found["models_compared"]) == ["gemma3:4b", "phi4-mini", "qwen2.5:7b"]
    assert found["best_performing"] == max(scores, key=lambda name: scores[name]) == found["models_compared"][0]
    assert found["performance_gap"] == pytest.approx(max(scores.values()) - min(scores.values()))
    assert found["statistical_significance"] == "p < 0.05", ".004 three times over"
    assert found["recommendations"]
    assert found["omnibus"][0]["p_value"] == 0.01
    (task,) = found["tasks"]
    assert set(task["values"]) == set(scores)
    assert [one["correction"] for one in task["differences"]] == ["holm"] * 3


async def test_the_order_of_the_models_changes_nothing(gateway: Running) -> None:
    for model in ("a", "b", "c"):
        done(gateway, model)
    assert await compare(gateway, "a", "b", "c") == await compare(gateway, "c", "a", "b")


async def test_no_difference_is_told_with_its_p(gateway: Running) -> None:
    done(gateway, "same-1")
    done(gateway, "same-2")
    found = await compare(gateway, "same-1", "same-2")
    assert found["statistical_significance"] == "not significant (p = 0.21)"
    assert found["performance_gap"] == 0


async def test_runs_that_do_not_compare_have_no_gap(gateway: Running) -> None:
    done(gateway, "twisted")
    done(gateway, "straight")
    found = await compare(gateway, "twisted", "straight")
    assert found["statistical_significance"] == "not comparable: the prompts differ"
    assert found["performance_gap"] is None
    assert found["best_performing"] is None
    assert found["differences"][0]["verdict"] == "not_comparable"


async def test_what_is_asked_is_passed_on(gateway: Running) -> None:
    done(gateway, "a")
    done(gateway, "b")
    found = await compare(
        gateway, "a", mode="loglikelihood", baseline="b", margin=0.02, seed=7, alpha=0.1, project_id=3, metrics=["f1"]
    )
    assert gateway.world.asked[-1] == comparison_pb2.CompareRequest(
        subjects=["a"],
        suite="demo",
        mode=suite_pb2.MODE_LOGLIKELIHOOD,
        metrics=["f1"],
        baseline="b",
        margin=0.02,
        seed=7,
        project_id=3,
        alpha=0.1,
    )
    assert (found["mode"], found["margin"], found["alpha"]) == ("loglikelihood", 0.02, 0.1)


async def test_jobs_alone_tell_their_suite(gateway: Running) -> None:
    jobs = [done(gateway, model).job_id for model in ("a", "b")]
    assert (await gateway.client.post(URL, json={"model_ids": jobs})).status_code == 200
    assert asked_suite(gateway) == ""
    assert (await gateway.client.post(URL, json={"model_ids": [jobs[0], "b"]})).status_code == 400
    assert asked_suite(gateway) == "glue"


async def test_an_unknown_model_is_named(gateway: Running) -> None:
    done(gateway, "a")
    answer = await gateway.client.post(URL, json={"model_ids": ["a", "nobody"], "benchmark_suite": "demo"})
    assert answer.status_code == 404
    assert "'nobody'" in answer.json()["detail"]


async def test_an_unknown_suite_is_refused_with_those_that_exist(gateway: Running) -> None:
    answer = await gateway.client.post(URL, json={"model_ids": ["a", "b"], "benchmark_suite": "gleu"})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "Invalid benchmark suite. Supported: glue, demo"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"model_ids": ["a"]}, 400, "at least two"),
        ({"model_ids": []}, 400, "at least two"),
        ({"model_ids": ["a", "a"]}, 400, "at least two"),
        ({"model_ids": ["a", "b"], "metrics": ["bleu"]}, 400, "score, accuracy, f1"),
        ({"model_ids": ["a", "b"], "metrics": []}, 422, "1 to 20"),
        ({"model_ids": ["a", "b"], "margin": 0}, 422, "margin must be above 0"),
        ({"model_ids": ["a", "b"], "alpha": 1}, 422, "alpha must be between"),
        ({"model_ids": ["a", "b"], "mode": "both"}, 422, "generate, loglikelihood"),
        ({"model_ids": ["a", "b"], "seed": "x"}, 422, "seed must be a whole number"),
        ({"model_ids": ["a", "b"], "models": 1}, 422, "models is not known"),
        ({"model_ids": "a"}, 422, "must be a list"),
        ({"model_ids": ["a", 5]}, 422, "must be a string"),
        ({"model_ids": ["a", "\x00"]}, 422, "control character"),
        ({"model_ids": [str(number) for number in range(21)]}, 422, "0 to 20"),
        ({}, 422, "model_ids is required"),
        ([], 422, "must be an object"),
    ],
)
async def test_wrong_bodies_are_refused_with_what_to_do(gateway: Running, body: Any, status: int, words: str) -> None:
    answer = await gateway.client.post(URL, json=body)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
