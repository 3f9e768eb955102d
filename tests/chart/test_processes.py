"""The processes that the chart describes, with its variables and commands, work together on this machine: all probes
answer, a job runs, and everything ends in time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from deploy import probe
from deploy.local.ports import free_port
from tests.chart.references import probed_port
from tests.chart.rendered import (
    WORKLOADS,
    Object,
    component,
    config_files,
    container,
    environ,
    of_kind,
    pod,
    port_number,
    render,
    values_files,
)
from tests.nats_server import binary
from tests.stack import until

pytestmark = pytest.mark.stack

ORDER = ("nats", "results", "scheduler", "evaluator", "gateway")
START_S = 240
"""As long as Kubernetes waits for most of them. A busy machine needs minutes for five starts at a time."""


class Local:
    """The small installation on loopback: every port is another one, and every path is below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = render(values_files()["small"])
        self.workloads = {component(one): one for one in of_kind(self._objects, *WORKLOADS)}
        self._ports = {
            (name, port["containerPort"]): free_port()
            for name, workload in self.workloads.items()
            for port in container(workload)["ports"]
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def port(self, name: str, port: int | str) -> int:
        number = port_number(self.workloads[name], port)
        assert number is not None
        return self._ports[name, number]

    def _here(self, name: str, text: str) -> str:
        """What a container's text says of ports and paths, for this machine."""
        for (owner, there), here in self._ports.items():
            node = f"trial-{owner}-0.trial-{owner}" if owner == "nats" else f"trial-{owner}"
            text = text.replace(f"{node}.bench.svc:{there}", f"127.0.0.1:{here}")
            if owner == name:
                text = text.replace(f"0.0.0.0:{there}", f"127.0.0.1:{here}")
        for path in ("/var/lib", "/etc/touchstone", "/run/nats"):
            text = text.replace(path, f"{self._folder}/{name}{path}")
        return text

    def variables(self, name: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TOUCHSTONE_")}
        given = {key: self._here(name, value) for key, value in environ(self.workloads[name]).items()}
        if name == "gateway":
            given |= {"TOUCHSTONE_HTTP_HOST": "127.0.0.1", "TOUCHSTONE_HTTP_PORT": str(self.port(name, "http"))}
        return {**inherited, **given, "HOME": str(self._folder)}

    def start(self, name: str) -> None:
        for folder in ("var/lib/touchstone", "run/nats"):
            (self._folder / name / folder).mkdir(parents=True)
        for path, text in config_files(self.workloads[name], self._objects):
            file = Path(f"{self._folder}/{name}{path}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._here(name, text))
        programs = {"python": sys.executable, "nats-server": binary()}
        first, *rest = container(self.workloads[name])["command"]
        rest = [one.replace("/etc/nats", f"{self._folder}/{name}/etc/nats") for one in rest]
        with (self._folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [programs[first], *rest], env=self.variables(name), cwd=self._folder, stdout=log, stderr=log
            )

    def answers(self, name: str, kind: str) -> bool:
        """Whether the container's probe succeeds."""
        asked: Object = container(self.workloads[name])[kind]
        address = f"127.0.0.1:{self.port(name, probed_port(asked))}"
        path = asked.get("httpGet", {}).get("path")
        return probe.main([f"http://{address}{path}" if path else address]) == 0

    def await_probes(self, name: str) -> None:
        """Raises AssertionError with the end of the log if they do not all answer in time."""
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            try:
                until(partial(self.answers, name, kind), START_S)
            except AssertionError as error:
                raise AssertionError(f"{name}: {kind} {error}\n{self.log(name)}") from error

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()[-2000:]

    def stop(self, name: str) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.monotonic()
        self.processes[name].terminate()
        status = self.processes[name].wait(pod(self.workloads[name])["terminationGracePeriodSeconds"])
        assert status == 0, self.log(name)
        return time.monotonic() - began


@contextmanager
def local(folder: Path) -> Iterator[Local]:
    made = Local(folder)
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


def test_they_start_run_a_job_and_stop(tmp_path: Path) -> None:
    with local(tmp_path) as here:
        for name in ORDER:
            here.start(name)
        for name in ORDER:
            here.await_probes(name)
        with httpx.Client(base_url=f"http://127.0.0.1:{here.port('gateway', 'http')}/api/v1/benchmarking") as client:
            assert client.get("/queue").status_code == 401
            client.headers["Authorization"] = f"Bearer {token(here)}"
            body = {"project_id": 1, "suite": "demo", "config": {"provider": "baseline", "model": "majority"}}
            made = client.post("/run", json=body)
            assert made.status_code == 200, made.text
            path = f"/results/{made.json()['job_id']}"
            until(lambda: client.get(path).json()["status"] == "completed", START_S, every_s=1)
        taken = {name: here.stop(name) for name in reversed(ORDER)}
        for name, seconds in taken.items():
            assert seconds < pod(here.workloads[name])["terminationGracePeriodSeconds"] / 2, taken


def token(here: Local) -> str:
    """An admin's, made as the chart's notes say."""
    words = ["token", "create", "--user", "alice", "--role", "admin", "--label", "first"]
    command = [sys.executable, "-m", "services.gateway", *words]
    ran = subprocess.run(command, env=here.variables("gateway"), capture_output=True, text=True, check=True, timeout=60)
    (found,) = re.findall(r"\bts_\S+", ran.stdout)
    return str(found)
