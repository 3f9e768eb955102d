"""A whole installation with a stub of Ollama's wire, and an Airflow that has the client's wheel and the DAG."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from deploy.local.settings import ROOT
from services.experiments import reading
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Stack, running
from tests.stub_thread import stub_thread
from tests.waiting import until
from touchstone.v1 import job_pb2, results_service_pb2

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

    @property
    def environment(self) -> dict[str, str]:
        """Of Airflow's processes."""
        inherited = {n: value for n, value in os.environ.items() if not n.startswith(("TOUCHSTONE_", "PYTHON"))}
        own = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "deploy/airflow/dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "deploy/airflow/plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        return {**inherited, **own, **self.settings}

    def airflow(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of Airflow's environment."""
        return subprocess.run(
            [str(ENVIRONMENT / "bin" / words[0]), *words[1:]],
            cwd=self.home,
            env=self.environment,
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


@contextmanager
def both(folder: Path, request: pytest.FixtureRequest, environment: Mapping[str, str]) -> Iterator[World]:
    """Touchstone, with variables of its own, and Airflow's database."""
    (folder / "home").mkdir()
    with stub_thread() as stubs:
        ollama = stubs.start(Ollama(Behaviour(models=[*MODELS, JUDGE, BROKEN], answer=answer)))
        ollama.parameter_size = "1B"
        endpoints = [{"name": "ollama", "kind": "ollama", "base_url": ollama.url, "concurrency": 8}]
        with running(Stack(folder / "touchstone", endpoints, environment=environment), request) as stack:
            stack.know_models("ollama")
            settings = {
                "TOUCHSTONE_SCHEDULER": f"127.0.0.1:{stack.scheduler_port}",
                "TOUCHSTONE_RESULTS": f"127.0.0.1:{stack.results_port}",
            }
            made = World(stack, ollama, folder / "home", settings)
            migrated = made.airflow("airflow", "db", "migrate")
            assert migrated.returncode == 0, migrated.stderr
            yield made
