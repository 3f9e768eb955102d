"""The processes that the chart describes, with its variables and commands, work together on this machine: all probes
answer, a job runs, its results can be read while the results service is away, and everything ends in time."""

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

import grpc
import httpx
import pytest

from deploy import probe
from deploy.local.ports import free_port
from tests.chart.references import probed_port
from tests.chart.rendered import (
    Object,
    config_files,
    container,
    environ,
    pod,
    port_number,
    process,
    processes,
    render,
    values_files,
)
from tests.nats_server import binary
from tests.stack import until
from touchstone.v1 import results_service_pb2, results_service_pb2_grpc

pytestmark = pytest.mark.stack

ORDER = ("nats", "results", "replica", "scheduler", "evaluator", "gateway")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
START_S = 240
"""As long as Kubernetes waits for most of them. A busy machine needs minutes for five starts at a time."""


class Local:
    """The small installation with a copy for reads, on loopback: every port is another one, and every path is below a
    folder of each process. That of the copy's reader is the results service's, as they share a volume."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        small = values_files()["small"]
        copied = {"replica": {"enabled": True, "everyS": 1}}
        self._objects = render({**small, "results": {**small["results"], **copied}})
        self.parts = {process(one): one for one in processes(self._objects)}
        self._ports = {
            (name, port["containerPort"]): free_port()
            for name, part in self.parts.items()
            for port in container(part)["ports"]
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def port(self, name: str, port: int | str) -> int:
        number = port_number(self.parts[name], port)
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
            text = text.replace(path, f"{self.place(name)}{path}")
        return text

    def place(self, name: str) -> Path:
        return self._folder / ("results" if name == "replica" else name)

    def variables(self, name: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TOUCHSTONE_")}
        given = {key: self._here(name, value) for key, value in environ(self.parts[name]).items()}
        if name == "gateway":
            given |= {"TOUCHSTONE_HTTP_HOST": "127.0.0.1", "TOUCHSTONE_HTTP_PORT": str(self.port(name, "http"))}
        return {**inherited, **given, "HOME": str(self._folder)}

    def start(self, name: str) -> None:
        for folder in ("var/lib/touchstone", "run/nats"):
            (self.place(name) / folder).mkdir(parents=True, exist_ok=True)
        for path, text in config_files(self.parts[name], self._objects):
            file = Path(f"{self.place(name)}{path}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._here(name, text))
        programs = {"python": sys.executable, "nats-server": binary()}
        first, *rest = container(self.parts[name])["command"]
        rest = [one.replace("/etc/nats", f"{self._folder}/{name}/etc/nats") for one in rest]
        with (self._folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [programs[first], *rest], env=self.variables(name), cwd=self._folder, stdout=log, stderr=log
            )

    def answers(self, name: str, kind: str) -> bool:
        """Whether the container's probe succeeds."""
        asked: Object = container(self.parts[name])[kind]
        address = f"127.0.0.1:{self.port(name, probed_port(asked))}"
        path = asked.get("httpGet", {}).get("path")
        return probe.main([f"http://{address}{path}" if path else address]) == 0

    def await_probes(self, name: str) -> None:
        """Raises AssertionError with the end of the log if they do not all answer in time."""
        for kind in PROBES:
            if kind not in container(self.parts[name]):
                continue
            try:
                until(partial(self.answers, name, kind), START_S)
            except AssertionError as error:
                raise AssertionError(f"{name}: {kind} {error}\n{self.log(name)}") from error

    def metric(self, name: str, metric: str) -> float:
        """A metric without labels."""
        port = "replica-metrics" if name == "replica" else "metrics"
        text = httpx.get(f"http://127.0.0.1:{self.port(name, port)}/metrics", timeout=60).text
        (found,) = re.findall(rf"(?m)^{metric} (\S+)$", text)
        return float(found)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()[-2000:]

    def stop(self, name: str) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.monotonic()
        self.processes[name].terminate()
        status = self.processes[name].wait(pod(self.parts[name])["terminationGracePeriodSeconds"])
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
            written = here.metric("results", "touchstone_copy_age_seconds")
            assert written < START_S
            until(lambda: copied(here, client, path), START_S, every_s=1)
            here.processes["results"].kill()
            here.processes["results"].wait()
            answer = client.get(path)
            assert (answer.status_code, answer.json()["status"]) == (200, "completed")
            assert "Touchstone-As-Of" in answer.headers
            assert here.metric("replica", "touchstone_nats_connected") == 1
            here.start("results")
            here.await_probes("results")
            until(lambda: "Touchstone-As-Of" not in client.get(path).headers, START_S)
        taken = {name: here.stop(name) for name in reversed(ORDER)}
        for name, seconds in taken.items():
            assert seconds < pod(here.parts[name])["terminationGracePeriodSeconds"] / 2, taken


def copied(here: Local, client: httpx.Client, path: str) -> bool:
    """Whether the copy has the job."""
    channel = grpc.insecure_channel(f"127.0.0.1:{here.port('replica', 'replica')}")
    with channel:
        asked = results_service_pb2.GetJobResultRequest(job_id=path.rpartition("/")[2])
        metadata = (("authorization", client.headers["Authorization"]),)
        try:
            stub = results_service_pb2_grpc.ResultsServiceStub(channel)
            return bool(stub.GetJobResult(asked, timeout=20, metadata=metadata).result.sealed)
        except grpc.RpcError:
            return False


def token(here: Local) -> str:
    """An admin's, made as the chart's notes say."""
    words = ["token", "create", "--user", "alice", "--role", "admin", "--label", "first"]
    command = [sys.executable, "-m", "services.gateway", *words]
    ran = subprocess.run(command, env=here.variables("gateway"), capture_output=True, text=True, check=True, timeout=60)
    (found,) = re.findall(r"\bts_\S+", ran.stdout)
    return str(found)
