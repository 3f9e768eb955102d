"""A real serving engine, `transformers serve`, with two real models in turn, under the whole installation.

On the GPU where there is one, else on the CPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.settings import ROOT
from tests.engines import Sampler, none_left, running
from tests.stack import Stack, until
from tests.stack import running as running_stack
from tests.tiny_model import prompts, server
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.model

GPU = shutil.which("nvidia-smi") is not None
MODELS = ("first", "second")
TOO_LARGE = "third"
ROWS = 400
ITEMS = 40


def untrained(folder: Path) -> None:
    rows = folder / "rows.jsonl"
    prompts.write(rows, folder / "mirror", rows=ROWS)
    for seed, name in enumerate(MODELS):
        arguments = [str(rows), str(folder / name), str(seed)]
        command = [str(server.ENVIRONMENT / "bin" / "python"), "-m", "tests.tiny_model.untrained", *arguments]
        subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)


def endpoints(folder: Path) -> Path:
    """`transformers serve` knows a model by the path that it was started with."""
    serve = [str(server.ENVIRONMENT / "bin" / "transformers"), "serve", "{path}"]
    command = [*serve, "--host", "{host}", "--port", "{port}", "--device", "cuda:0" if GPU else "cpu"]
    # Its listing reads the hub's cache folder and fails where there is none.
    (folder / "cache" / "hub").mkdir(parents=True)
    file = folder / "endpoints.toml"
    lines = [
        *("[[endpoint]]", 'name = "gpu0"', 'kind = "engine"', "concurrency = 4"),
        *("[endpoint.engine]", f"command = {json.dumps(command)}", 'served_as = "{path}"'),
        *([] if GPU else ['device = "cpu"']),
        f'env = {{HF_HUB_OFFLINE = "1", HF_HOME = {json.dumps(str(folder / "cache"))}, OMP_NUM_THREADS = "1"}}',
        "[endpoint.engine.models]",
        *(f"{name} = {{path = {json.dumps(str(folder / name))}, memory_gb = 0.2}}" for name in MODELS),
        f"{TOO_LARGE} = {{path = {json.dumps(str(folder / MODELS[0]))}, memory_gb = 90000}}",
    ]
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not server.installed():
        pytest.skip("The small model's environment is not set up. Run: make model-env")
    folder = tmp_path_factory.mktemp("engine")
    untrained(folder)
    return folder


@pytest.fixture(scope="module")
def stack(folder: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    environment = {"TOUCHSTONE_ENDPOINTS": str(endpoints(folder))}
    with running_stack(Stack(folder / "stack", [], environment=environment), request) as stack:
        yield stack


def run(stack: Stack, model: str) -> str:
    params = {"temperature": 0.0, "num_predict": 4}
    return stack.run("gpu0", model, "demo", tasks=["sentiment"], limit=ITEMS, params=params)


def test_jobs_of_two_models_complete_and_never_are_two_engines_there(stack: Stack, folder: Path) -> None:
    with Sampler(str(folder), "transformers") as seen:
        jobs = {run(stack, model): model for model in (*MODELS, MODELS[0])}
        for job_id in jobs:
            stack.completed(job_id, timeout_s=180)
    digests: dict[str, set[str]] = {model: set() for model in MODELS}
    for job_id, model in jobs.items():
        items = stack.items(job_id)
        assert len(items) == ITEMS
        # The server's own word for what answered: it adds a revision to the path.
        assert all(item.result.served_model.startswith(str(folder / model)) for item in items)
        digests[model].add(stack.job(job_id).receipt.model_digest)
    (first,), (second,) = digests.values()
    assert first.startswith("sampled-sha256:")
    assert first != second
    assert max(seen.counts) == 1
    assert len(seen.counts) > 100


def test_a_model_that_does_not_fit_is_refused_with_the_free_memory(stack: Stack) -> None:
    job = stack.wait(run(stack, TOO_LARGE), timeout_s=60)
    assert job.state == job_pb2.Job.STATE_FAILED
    where = "GPU memory" if GPU else "memory"
    assert re.search(rf"third needs 90000 GB of .*{where}; \d+\.\d GB are free", job.reason), job.reason


def test_no_engine_is_left_when_the_evaluator_is_killed_and_the_job_completes(stack: Stack, folder: Path) -> None:
    job_id = run(stack, "second")
    until(lambda: stack.job(job_id).progress.items_done > 0, timeout_s=120)
    engines = set(running(str(folder), "transformers"))
    assert engines
    os.kill(evaluator(stack), signal.SIGKILL)
    until(lambda: not engines & set(running(str(folder), "transformers")), timeout_s=2)
    assert stack.wait(job_id, timeout_s=180).state == job_pb2.Job.STATE_COMPLETED


def test_no_engine_is_left_when_everything_stops(stack: Stack, folder: Path) -> None:
    assert running(str(folder), "transformers")
    stack.stop()
    assert none_left(str(folder))


def evaluator(stack: Stack) -> int:
    """The pid of the stack's only evaluator."""
    children = json.loads((stack.state_dir / "children.json").read_text())["children"]
    (pid,) = (pid for name, (pid, _) in children.items() if name.startswith("evaluator"))
    return int(pid)
