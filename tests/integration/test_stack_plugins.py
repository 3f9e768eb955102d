"""Plug-ins through every process: the example of the documentation, built and installed, and faulty ones."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.local.settings import ROOT
from tests.plugin_packages import SCORERS, SUITES, install, scorer, suite
from tests.stack import Stack, running
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.stack

UV = Path(sys.executable).with_name("uv")
EXAMPLE = ROOT / "docs/examples/plugin"


def _run(*command: str | Path) -> None:
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installed packages: the example, built as its author would, and one with every kind of fault."""
    folder, dist = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("dist")
    _run(UV, "build", "--quiet", "--wheel", "--out-dir", dist, EXAMPLE)
    (wheel,) = dist.glob("*.whl")
    _run(UV, "pip", "install", "--quiet", "--no-deps", "--target", folder, wheel)
    modules = {
        "no_import": "raise RuntimeError('no luck today')",
        "no_rows": suite("no_rows", rows="raise OSError('no disk')"),
        "no_score": suite("no_score", judge="raise ValueError('odd')"),
        "no_end": suite("no_end", judge="time.sleep(1000)"),
        "no_verdict": scorer("no_verdict", judge="raise ValueError('odd')"),
    }
    suites = {name: name for name in ("no_import", "no_rows", "no_score", "no_end")}
    install(folder, "trouble", modules, {SUITES: suites, SCORERS: {"no_verdict": "no_verdict:SCORER"}})
    return folder


@pytest.fixture(scope="module")
def stack(site: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    endpoints: list[dict[str, str | int]] = [
        {"name": "adds", "kind": "calculator", "concurrency": 4},
        {"name": "gone", "kind": "uninstalled"},
    ]
    environment = {"PYTHONPATH": str(site), "TOUCHSTONE_PLUGIN_SCORE_S": "3"}
    stack = Stack(tmp_path_factory.mktemp("stack"), endpoints, environment=environment)
    with running(stack, request):
        stack.know_models("adds", "baseline")
        yield stack


def _upload(stack: Stack, scorer: str) -> str:
    rows = [{"prompt": "b a", "reference": "a b"}, {"prompt": "a", "reference": "b"}]
    sent = {"file": ("rows.jsonl", "\n".join(map(json.dumps, rows)).encode())}
    with httpx.Client(base_url=f"{stack.url}/admin", trust_env=False, timeout=30) as client:
        answer = client.post("/datasets/upload", data={"scorer": scorer}, files=sent)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["dataset_id"])


def _over(stack: Stack, dataset: str, *further: str) -> str:
    body: dict[str, Any] = {"dataset_id": dataset, "model_id": "echo", "provider": "baseline"}
    body |= {"further_scorers": [{"scorer": name} for name in further]}
    with httpx.Client(base_url=f"{stack.url}/admin", trust_env=False, timeout=30) as client:
        answer = client.post("/benchmarks/run", json=body)
    assert answer.status_code == 200, answer.text
    found: Any = answer.json()
    return str(uuid.UUID(found["benchmark_id"].removeprefix("bm_")))


def test_the_examples_suite_scorer_and_provider_are_used(stack: Stack) -> None:
    done = stack.completed(stack.run("adds", "adder", "sums"))
    job = stack.job(done["job_id"])
    assert [(task.items, task.plugin) for task in job.plan] == [(100, "touchstone-example 1.0")]
    assert job.receipt.server == "calculator 1.0"
    assert {item.result.statistics["correct"] for item in stack.items(job.job_id)} == {1.0}

    scored = stack.completed(_over(stack, _upload(stack, "same_words")))
    items = stack.items(scored["job_id"])
    assert [item.result.statistics["correct"] for item in items] == [1.0, 0.0]
    (task,) = stack.job(scored["job_id"]).plan
    assert (task.plugin, task.scorer_version) == ("touchstone-example 1.0", "same_words-1")

    also = stack.completed(_over(stack, _upload(stack, "exact_match"), "same_words", "contains"))
    seen = [item.result.statistics for item in stack.items(also["job_id"])]
    assert [(one["correct"], one["same_words.correct"], one["contains.correct"]) for one in seen] == [
        (1, 1, 0),
        (0, 0, 0),
    ]
    assert next(one for one in stack.get("/suites")["suites"] if one["suite"] == "sums")["plugin"] == task.plugin


def test_code_that_fails_ends_its_own_job_by_its_name_and_no_other(stack: Stack) -> None:
    troubles = {
        stack.run("adds", "adder", "no_end"): "took longer than 3 s while scoring item",
        stack.run("adds", "adder", "no_rows"): "failed while reading the data of sums: OSError: no disk.",
        stack.run("adds", "adder", "no_score"): "failed while scoring item",
        _over(stack, _upload(stack, "no_verdict")): "failed while scoring an answer by no_verdict: ValueError: odd.",
        _over(stack, _upload(stack, "contains"), "no_verdict"): "failed while scoring an answer by no_verdict: ",
    }
    others = [stack.run("adds", "adder", "sums"), stack.run("baseline", "majority", "demo", tasks=["sentiment"])]

    for job_id in others:
        stack.completed(job_id)
    for job_id, reason in troubles.items():
        job = stack.wait(job_id)
        assert job.state == job_pb2.Job.STATE_FAILED
        assert f"The plug-in trouble 1.0 {reason}" in job.reason
        assert (" of rows.jsonl (row-" in job.reason) == job.spec.HasField("dataset"), job.reason
        # What could not be scored counts nowhere as wrong.
        assert stack.items(job_id) == []
    stack.completed(stack.run("adds", "adder", "sums", limit=5))


def test_what_is_left_out_is_named_where_users_and_operators_look(stack: Stack) -> None:
    (evaluator,) = stack.get("/evaluators")["evaluators"]
    trouble = next(one for one in evaluator["plugins"] if one["package"] == "trouble")
    out = {part["name"]: part["left_out"] for part in trouble["parts"] if part["left_out"]}
    assert out == {"no_import": "RuntimeError: no luck today."}
    gone = next(one for one in stack.get("/endpoints")["endpoints"] if one["endpoint"] == "gone")
    assert gone["state"] == "not_configured"
    assert gone["detail"].startswith("No installed package offers the kind uninstalled. Install the package whose ")
    with stack.client() as client:
        page = client.get(f"{stack.url}/run").text
        refused = client.post("/run", json=_suite_job("no_import"))
    assert "Left out: trouble 1.0, suite no_import: RuntimeError: no luck today." in page
    assert refused.status_code == 400
    assert "no_score" in refused.json()["detail"]


def _suite_job(suite: str) -> dict[str, object]:
    return {"project_id": 1, "suite": suite, "config": {"provider": "adds", "model": "adder"}}


def test_units_find_the_evaluator_that_has_the_package(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = _upload(stack, "same_words")
    monkeypatch.setitem(stack._environment, "PYTHONPATH", "")
    endpoints: list[dict[str, str | int]] = [{"name": "baseline", "kind": "baseline"}]
    with stack.evaluator("evaluator-plain", endpoints):
        jobs = [stack.run("baseline", "random", "sums") for _ in range(3)] + [_over(stack, dataset) for _ in range(3)]
        for job_id in jobs:
            stack.completed(job_id)
    log = (stack.folder / "evaluator-plain.log").read_text()
    assert "is given back: it needs the plug-in" in log
