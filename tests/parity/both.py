"""Runs every compared task twice on the same rows behind one server: through lm_eval, and through our own parts."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from services.evaluator import item_result
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.metrics import ACC_BYTES, ACC_NORM, ACCURACY
from services.evaluator.items.task import Item
from services.evaluator.make_provider import provider
from services.evaluator.providers.protocol.provider import Request
from services.evaluator.tasks.kinds.split_task import SplitTask
from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.migrations import open_file
from tests.parity.compared import COMPARED, all_definitions
from tests.parity.mirror import read_rows, write_mirror, write_rows
from tests.tiny_model.server import ENVIRONMENT
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2

SHOTS = (0, 2)
ALSO_MIRRORED = ("gsm8k/gsm8k",)
MODEL = "parity"
LONGEST_S = 500
_HERE = Path(__file__).parent


@dataclass(slots=True)
class Run:
    """One task with one number of examples: our items with their results and metrics, and what lm_eval found."""

    task: SplitTask
    items: Sequence[Item]
    answered: list[item_result_pb2.ItemResult] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs by task and number of examples, and what the suite of lm_eval's own tasks gave (`run_adapter.py`)."""

    runs: Mapping[tuple[str, int], Run]
    adapter: Mapping[str, Any]


def installed() -> bool:
    """Whether `make parity-env` was run here."""
    return any(ENVIRONMENT.glob("lib/*/site-packages/lm_eval"))


def run_both(folder: Path) -> Comparison:
    """Two to five minutes. Raises RuntimeError with the log of a program that fails."""
    known = all_definitions()
    mirror = write_mirror(folder / "mirror", [known[name] for name in (*COMPARED, *ALSO_MIRRORED)])
    catalogue = Catalogue(mirror)
    runs = {(name, shots): _run(catalogue, name, shots) for name in COMPARED for shots in SHOTS}
    items = [item for run in runs.values() for item in run.items]
    texts = {"contexts": [i.context for i in items], "choices": [choice for i in items for choice in i.choices]}
    (folder / "texts.json").write_text(json.dumps(texts))
    _python(folder, "make_model.py", "texts.json", MODEL)
    with _served(folder) as url:
        tasks = {name: _files(folder, name, runs[name, max(SHOTS)].task) for name in COMPARED}
        (folder / "plan.json").write_text(json.dumps({"url": url, "model": MODEL, "shots": SHOTS, "tasks": tasks}))
        with ThreadPoolExecutor(1) as beside:
            theirs = beside.submit(_python, folder, "run_lm_eval.py", "plan.json", "found.json")
            asyncio.run(_answer(url, runs))
            _python(folder, "run_adapter.py", "mirror", url, "adapter.json")
            theirs.result()
    for found in json.loads((folder / "found.json").read_text()):
        run = runs[found["task"], found["shots"]]
        run.documents, run.results = found["documents"], found["results"]
    _measure(folder / "results.duckdb", runs)
    return Comparison(runs, json.loads((folder / "adapter.json").read_text()))


def _run(catalogue: Catalogue, name: str, shots: int) -> Run:
    suite, _, task_name = name.partition("/")
    task = catalogue.task(suite, task_name, suite_pb2.MODE_LOGLIKELIHOOD, shots)
    assert isinstance(task, SplitTask)
    return Run(task, list(task.items(range(task.size()))))


def _files(folder: Path, name: str, task: SplitTask) -> dict[str, Any]:
    """lm_eval's name of a task and its files: the same rows, and as train split the rows that are our examples."""
    pair, definition = COMPARED[name], all_definitions()[name]
    files: dict[str, str] = {}
    for split in (definition.split, definition.train_split):
        source = definition.source
        found = read_rows(folder / "mirror" / source.dataset / source.config / f"{split}.jsonl")
        own = [pair.converted(row) for row in found if pair.belongs(row)]
        if split == definition.train_split:
            own = [own[index] for index in task.example_rows()]
        file = folder / "lm_eval" / name / f"{split}.jsonl"
        write_rows(file, own)
        files[split] = str(file)
    return {"task": pair.lm_eval, "files": files}


async def _answer(url: str, runs: Mapping[tuple[str, int], Run]) -> None:
    asked = provider(Endpoint(MODEL, "openai", base_url=url))
    try:
        for run in runs.values():
            for item in run.items:
                response = await asked.loglikelihoods(Request(MODEL, job_pb2.Sampling(), run.task, item))
                run.answered.append(item_result.answered(run.task, item, item.index, 0, response, 1))
    finally:
        await asked.close()


def _measure(file: Path, runs: Mapping[tuple[str, int], Run]) -> None:
    """Each run's metrics, as the results service computes them from what is stored."""
    connection = open_file(file)
    for shots in SHOTS:
        job = job_pb2.Job(job_id=f"shots-{shots}", state=job_pb2.Job.STATE_RUNNING, attempt=1)
        job.created_at.FromDatetime(datetime.now(UTC))
        for name in COMPARED:
            run = runs[name, shots]
            shown = {spec.metric: spec for spec in (ACCURACY, ACC_NORM, ACC_BYTES, *run.task.metrics)}
            job.plan.add(task=name, items=len(run.items), metrics=shown.values(), unit_size=len(run.items), repeats=1)
            batch = item_result_pb2.ItemResultBatch(job_id=job.job_id, attempt=1, task=name, items=run.answered)
            writes.store_items(connection, [batch])
        for task in job_result.compute(connection, job, seal=False).result.tasks:
            runs[task.task, shots].metrics = {metric.metric: metric.mean for metric in task.metrics}
    connection.close()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The base URL of the model's server, which runs meanwhile."""
    port = free_port()
    command = [str(ENVIRONMENT / "bin" / "python"), str(_HERE / "completions_server.py"), MODEL, str(port)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 180
        while not _answers(f"http://127.0.0.1:{port}/v1/models"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the model's server did not start:\n{(folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _python(folder: Path, script: str, *arguments: str) -> None:
    """Runs a script of this folder in the model's environment, offline, with this tree on its path."""
    ours = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'protos' / 'gen'}"}
    offline = {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", _HERE / script, *arguments],
        cwd=folder,
        env=dict(os.environ) | ours | offline,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-4000:]}")
