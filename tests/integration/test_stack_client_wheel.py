"""The client's wheel in an environment without the services: built, installed and used from there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.settings import ROOT
from services import __version__
from tests.stack import Stack, running

pytestmark = pytest.mark.stack

UV = Path(sys.executable).with_name("uv")


class Installed:
    """An environment that holds the wheel and what it asks for, away from this tree."""

    def __init__(self, folder: Path, wheel: Path, extra: str = "") -> None:
        self.folder = folder
        folder.mkdir()
        _run([UV, "venv", "--quiet", "--python", sys.executable, "env"], folder)
        _run([UV, "pip", "install", "--quiet", "--python", "env/bin/python", f"{wheel}{extra}"], folder)

    def run(self, program: str, *arguments: str, stack: Stack | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        if stack is not None:
            environment["TOUCHSTONE_SCHEDULER"] = f"127.0.0.1:{stack.scheduler_port}"
            environment["TOUCHSTONE_RESULTS"] = f"127.0.0.1:{stack.results_port}"
        command: list[str | Path] = [self.folder / "env/bin" / program, *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )


def _run(command: list[str | Path], folder: Path) -> None:
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT / "client"], folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("stack"), [])
    with running(stack, request):
        yield stack


def test_the_command_runs_compares_and_gates(tmp_path: Path, wheel: Path, stack: Stack) -> None:
    installed = Installed(tmp_path / "cli", wheel, "[cli]")
    for module in ("services", "deploy", "duckdb", "nats"):
        assert "No module named" in installed.run("python", "-c", f"import {module}").stderr

    def touchstone(*arguments: str) -> Any:
        made = installed.run("touchstone", *arguments, "--format", "json", stack=stack)
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    jobs = []
    for model in ("majority", "bag-of-words"):
        run = ["run", "--suite", "demo", "--endpoint", "baseline", "--model", model, "--limit", "100"]
        jobs.append(touchstone(*run)["job_id"])
    assert touchstone("compare", *jobs)
    for job, baseline, code in ((*jobs[::-1], 0), (*jobs, 1)):
        sides = ["--job", job, "--baseline", baseline, "--max-drop", "0.05"]
        gate = installed.run("touchstone", "gate", *sides, stack=stack)
        assert gate.returncode == code, gate.stdout + gate.stderr
    definition = tmp_path / "tips.yaml"
    definition.write_text("name: tips\nprovider: baseline\nmodels: echo\nprompts: [v1]\nn_scenarios: 2\n")
    checked = installed.run("touchstone", "bench", "collect", str(definition), "--check", stack=stack)
    assert checked.stdout == "tips: 2 cells, 2 questions. Nothing was started.\n", checked.stderr
    assert installed.run("touchstone", "--version").stdout == f"touchstone {__version__}\n"


def test_the_python_client_needs_no_more_than_grpc_and_protobuf(tmp_path: Path, wheel: Path, stack: Stack) -> None:
    installed = Installed(tmp_path / "bare", wheel)
    script = (
        "from touchstone_client import Client, suite_spec\n"
        "with Client() as client:\n"
        "    job = client.run(suite_spec('demo', endpoint='baseline', model='random', limit=20))\n"
        "    *_, last = client.watch(job.job_id)\n"
        "    print(last.progress.items_done, client.result(job.job_id).suite_score.n)\n"
    )
    made = installed.run("python", "-c", script, stack=stack)
    assert made.returncode == 0, made.stderr
    done, _ = made.stdout.split()
    assert int(done) > 0
    internal = installed.run("python", "-c", "import touchstone.v1.results_internal_service_pb2_grpc")
    assert "No module named" in internal.stderr
    command = installed.run("touchstone", "leaderboard", "demo")
    assert (command.returncode, command.stderr) == (
        2,
        "touchstone: The command needs the packages of the extra cli. Install the wheel as: WHEEL[cli]\n",
    )
