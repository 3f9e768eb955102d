"""The DAG in a real Airflow, with the client's wheel, against a whole installation and a stub of Ollama's wire."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from deploy.local.settings import ROOT
from services.experiments import reading
from services.words import rubrics
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Stack, running
from tests.stub_thread import stub_thread
from tests.waiting import until
from touchstone.v1 import job_pb2, results_service_pb2

pytestmark = pytest.mark.airflow

ENVIRONMENT = ROOT / ".venv-airflow"
MODELS = ["qwen2.5:0.5b", "gemma3:1b"]
JUDGE, BROKEN = "llama3.2:3b", "broken:1b"
NAME = "tip-bench-airflow"
CONF = {
    "experiment": NAME,
    "models": ",".join(MODELS),
    "prompts": ["v1", {"id": "own", "template": "Tips at {{time}}: {{tasks}}"}],
    "n_scenarios": 3,
    "n_tips": 2,
    "diversity": True,
    "temperature": 0.5,
    "max_model_b": 4.0,
}
CELLS = 2 * 2 * 3
VERDICT = json.dumps({"reason": "", "scores": {one.name: 4 for one in reading.shipped_rubric().criteria}})


class Ollama(OllamaServer):
    """Cannot load the model BROKEN. Answers nothing before the file `hold` exists, if it is set."""

    hold: Path | None = None

    async def chat(self, request: web.Request) -> web.StreamResponse:
        if self.hold:
            await until(self.hold.exists, within=120)
        if (await request.json())["model"] == BROKEN:
            return web.json_response({"error": "this model does not load"}, status=404)
        return await super().chat(request)


@dataclass
class World:
    """The installation, its stub, and Airflow's home, and the variables of Airflow's processes."""

    stack: Stack
    ollama: Ollama
    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def airflow(self, *words: str) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("TOUCHSTONE_", "PYTHON"))
        }
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "deploy/airflow/dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "deploy/airflow/plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": os.pathsep.join(str(ROOT / "deploy/airflow" / part) for part in ("dags", "plugins")),
        }
        return subprocess.run(
            [str(ENVIRONMENT / "bin" / words[0]), *words[1:]],
            cwd=self.home,
            env={**inherited, **own, **self.settings},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    def inside(self, verb: str, *words: str) -> tuple[list[Any], str]:
        """The results of `inside.py`, and all that Airflow said."""
        made = self.airflow("python", str(Path(__file__).with_name("inside.py")), verb, *words)
        found = [json.loads(line) for line in made.stdout.splitlines() if line.startswith('{"')]
        assert len(found) == len(words), made.stdout + made.stderr
        return found, made.stdout + made.stderr

    def run(self, conf: Mapping[str, Any]) -> tuple[Any, str]:
        (found,), said = self.inside("run", json.dumps(conf))
        return found, said

    def jobs(self, name: str) -> list[job_pb2.Job]:
        request = results_service_pb2.GetExperimentRequest(name=name)
        return [*self.stack.results.GetExperiment(request, timeout=30).experiment.jobs]


def answer(prompt: str) -> str | Fault:
    return VERDICT if "<answer" in prompt else '["Rest.", "Walk."]'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "home").mkdir()
    with stub_thread() as stubs:
        ollama = stubs.start(Ollama(Behaviour(models=[*MODELS, JUDGE, BROKEN], answer=answer)))
        ollama.parameter_size = "1B"
        endpoints = [{"name": "ollama", "kind": "ollama", "base_url": ollama.url, "concurrency": 8}]
        with running(Stack(folder / "touchstone", endpoints), request) as stack:
            stack.know_models("ollama")
            settings = {
                "TOUCHSTONE_SCHEDULER": f"127.0.0.1:{stack.scheduler_port}",
                "TOUCHSTONE_RESULTS": f"127.0.0.1:{stack.results_port}",
            }
            made = World(stack, ollama, folder / "home", settings)
            migrated = made.airflow("airflow", "db", "migrate")
            assert migrated.returncode == 0, migrated.stderr
            yield made


def test_two_runs_with_the_same_conf_are_one_experiment(world: World) -> None:
    (first, second), said = world.inside("run", json.dumps(CONF), json.dumps(CONF))
    assert (first["state"], second["state"]) == ("success", "success"), said
    # Each run waited in the trigger.
    assert said.count("running trigger in line") == 2
    assert sorted(job.spec.model for job in world.jobs(NAME)) == sorted(MODELS)
    assert len(world.ollama.records) == CELLS

    tasks = first["tasks"]
    assert tasks["collect"]["result"] == NAME
    files = [Path(made["tasks"]["export_for_judge"]["result"]) for made in (first, second)]
    # People may have filled in the first one.
    assert [file.relative_to(world.home / "touchstone").stem for file in files] == [NAME, f"{NAME}-2"]
    document = json.loads(files[0].read_text())
    assert len(document["cells"]) == CELLS
    assert document["rubric"] == json.loads(rubrics.written(reading.shipped_rubric()))
    board = tasks["compare"]["result"]
    assert {(row["model"], row["prompt"]) for row in board["rows"]} == {(m, p) for m in MODELS for p in ("v1", "own")}
    assert all(row["answered"] == 3 for row in board["rows"])
    assert "No scores yet." in said


def test_judges_are_awaited_and_the_address_may_come_from_a_connection(world: World) -> None:
    extra = {"results": world.settings["TOUCHSTONE_RESULTS"]}
    connection = {"conn_type": "generic", "host": "127.0.0.1", "port": world.stack.scheduler_port, "extra": extra}
    folder = world.home / "for people"
    elsewhere = {
        "AIRFLOW_CONN_TOUCHSTONE": json.dumps(connection),
        "AIRFLOW_VAR_TOUCHSTONE_BENCH_DIR": str(folder),
        "TOUCHSTONE_SCHEDULER": "127.0.0.1:1",
    }
    judged = World(world.stack, world.ollama, world.home, {**world.settings, **elsewhere})
    judge = {"endpoint": "ollama", "model": JUDGE, "sampling": {"temperature": 0}, "repeats": 1}
    made, said = judged.run(CONF | {"experiment": "judged", "judges": [judge]})
    assert made["state"] == "success", said
    assert said.count("running trigger in line") == 2
    board = made["tasks"]["compare"]["result"]
    assert board["source"] == "judge"
    assert [row["scored"] for row in board["rows"]] == [3] * 4
    assert f"Scores are those of the judge ollama/{JUDGE}." in said
    assert Path(made["tasks"]["export_for_judge"]["result"]) == folder / "judged.json"


def test_a_failed_job_fails_the_task_and_a_retry_continues_the_experiment(world: World) -> None:
    conf = CONF | {"experiment": "failing", "models": f"{MODELS[0]},{BROKEN}"}
    made, said = world.run(conf)
    assert made["state"] == "failed", said
    tasks = made["tasks"]
    assert (tasks["collect"]["state"], tasks["collect"]["tries"]) == ("failed", 2), said
    assert (tasks["export_for_judge"]["state"], tasks["compare"]["state"]) == ("upstream_failed", "upstream_failed")
    by_model = {job.spec.model: job for job in world.jobs("failing")}
    assert f"{BROKEN}: {by_model[BROKEN].reason}" in said
    # The second try ran the failed job again, and no other.
    assert {model: job.attempt for model, job in by_model.items()} == {MODELS[0]: 1, BROKEN: 2}


def test_what_touchstone_refuses_is_not_tried_again(world: World) -> None:
    made, said = world.run(CONF | {"experiment": "wrong", "models": "qwen2.5:7b", "prompts": "v1,v9"})
    assert (made["tasks"]["collect"]["state"], made["tasks"]["collect"]["tries"]) == ("failed", 1), said
    assert "prompts[1]" in said


def test_a_wait_survives_a_restart_of_the_triggerer(world: World) -> None:
    world.ollama.hold = world.home / "stopped"
    with world.stack.client() as client:
        started = client.post(f"{world.stack.url}/api/bench/run", json=CONF | {"experiment": "slow"})
    assert started.status_code == 200
    (made,), said = world.inside("wait", "slow")
    assert made["kept"] == {"experiment": "slow"}
    assert made["stopped"], said
    assert made["event"] == {"experiment": "slow", "problems": []}
    assert {job.state for job in world.jobs("slow")} == {job_pb2.Job.STATE_COMPLETED}
