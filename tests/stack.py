"""The whole installation as processes of its own, as `make run` starts it, and the clients a test needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from deploy.local.ports import free_port, is_free
from deploy.local.settings import ROOT
from tests import rights_launcher
from touchstone.v1 import (
    job_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
)

API = "/api/v1/benchmarking"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 25
FINISHED = frozenset({job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED})
Endpoint = Mapping[str, Any]


class Stack:
    """One installation in `folder`. It may be stopped and started again there: ports and state stay the same.

    `endpoints` are the tables of its endpoints file; `environment` is added to its processes' (keys of providers,
    settings). Requests to the REST API are limited only where `requests_per_minute` says so. With `rights`, services
    have the least rights at NATS, and stopping fails if NATS refused something.
    """

    def __init__(
        self,
        folder: Path,
        endpoints: Iterable[Endpoint],
        data_dir: Path | None = None,
        *,
        evaluators: int = 1,
        auth: str = "local",
        requests_per_minute: int = 1_000_000,
        environment: Mapping[str, str] | None = None,
        rights: bool = bool(os.environ.get("TOUCHSTONE_LEAST_RIGHTS")),
    ) -> None:
        self.folder = folder
        self.rights = rights
        self.state_dir = folder / "state"
        self.port, self.nats_port, self.nats_monitor_port, self.scheduler_port, self.results_port = _ports(5)
        self.responses: list[str] = []
        """Heads and bodies of every REST answer so far."""
        self._process: subprocess.Popen[bytes] | None = None
        self._channels: dict[int, grpc.Channel] = {}
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")},
            "TOUCHSTONE_STATE_DIR": str(self.state_dir),
            "TOUCHSTONE_ENDPOINTS": str(endpoints_file(folder / "endpoints.toml", endpoints)),
            "TOUCHSTONE_AUTH": auth,
            "TOUCHSTONE_EVALUATORS": str(evaluators),
            "TOUCHSTONE_HTTP_PORT": str(self.port),
            "TOUCHSTONE_NATS_PORT": str(self.nats_port),
            "TOUCHSTONE_NATS_MONITOR_PORT": str(self.nats_monitor_port),
            "TOUCHSTONE_SCHEDULER_PORT": str(self.scheduler_port),
            "TOUCHSTONE_RESULTS_PORT": str(self.results_port),
            "TOUCHSTONE_REQUESTS_PER_MINUTE": str(requests_per_minute),
            # A service on a busy machine answers late, which the gateway would tell as its absence.
            "TOUCHSTONE_CALL_TIMEOUT_S": str(CALL_TIMEOUT_S),
            **({"TOUCHSTONE_DATA_DIR": str(data_dir)} if data_dir else {}),
            **(environment or {}),
        }

    # -- life ------------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Of the launcher, while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Stack:
        """Returns once the launcher says that everything runs and the gateway that it is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        launcher_log = self.folder / "launcher.log"
        with launcher_log.open("ab") as output:
            said_before = launcher_log.stat().st_size
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.rights_launcher" if self.rights else "deploy.local", "serve"],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"Touchstone is running" not in launcher_log.read_bytes()[said_before:] or not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"the stack did not start\n{self.tails()}")
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for the launcher alone when it does not end: its children die with it."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.kill(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"the stack did not stop within {STOP_TIMEOUT_S:g} s\n{self.tails()}") from None
        assert not self.violations(), "\n".join(self.violations())

    def violations(self) -> list[str]:
        """What NATS refused so far because of a missing right: each line of its log once."""
        lines = (line for log in (self.state_dir / "logs").glob("nats.log*") for line in log.read_text().splitlines())
        return sorted({line.partition(" - ")[2] for line in lines if "Violation" in line})

    def as_service(self, service: str) -> dict[str, str]:
        """Variables of a further process, which is one of the services to NATS."""
        if self.rights:
            return rights_launcher.login(self.state_dir, service, self.nats_port)
        return {"TOUCHSTONE_NATS_URL": (self.state_dir / "nats-url").read_text().strip()}

    def tails(self, lines: int = 15) -> str:
        """The ends of all logs."""
        logs = [self.folder / "launcher.log", *sorted((self.state_dir / "logs").glob("*.log"))]
        ends = ((log.name, log.read_text(errors="replace").splitlines()[-lines:]) for log in logs if log.exists())
        return "\n".join("\n".join((f"== {name}", *end)) for name, end in ends)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False, timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    @contextmanager
    def evaluator(self, name: str, endpoints: Iterable[Endpoint]) -> Iterator[subprocess.Popen[bytes]]:
        """A further evaluator beside the launcher's, with endpoints of its own. The test may kill it."""
        environment = self._environment | {
            **self.as_service("evaluator"),
            "TOUCHSTONE_NATS_MONITOR_URL": f"http://127.0.0.1:{self.nats_monitor_port}",
            "TOUCHSTONE_RESULTS": f"127.0.0.1:{self.results_port}",
            "TOUCHSTONE_SERVICE_TOKEN": (self.state_dir / "service-token").read_text().strip(),
            "TOUCHSTONE_ENDPOINTS": str(endpoints_file(self.folder / f"{name}.toml", endpoints)),
            "TOUCHSTONE_EVALUATOR_NAME": name,
            "TOUCHSTONE_EVALUATOR_LISTEN": f"127.0.0.1:{free_port()}",
        }
        with (self.folder / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.evaluator"], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
        try:
            request = scheduler_service_pb2.ListEvaluatorsRequest()
            until(
                lambda: any(e.evaluator == name and e.live for e in self.scheduler.ListEvaluators(request).evaluators)
            )
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def tokens(self, *arguments: str) -> str:
        """What `token …` prints, as an operator runs it."""
        made = subprocess.run(
            [sys.executable, "-m", "services.gateway", "token", *arguments],
            cwd=ROOT,
            env=self._environment | self.as_service("gateway"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return made.stdout

    def create_token(self, user: str, role: str = "user") -> str:
        return self.tokens("create", "--user", user, "--role", role, "--label", f"of-{user}").splitlines()[0]

    # -- clients ---------------------------------------------------------------------------------------------------

    def client(self, token: str = "") -> httpx.Client:
        """The REST API, as the token's user."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        hooks = {"response": [self._keep]}
        return httpx.Client(
            base_url=self.url + API, headers=headers, event_hooks=hooks, trust_env=False, timeout=httpx.Timeout(30)
        )

    def _keep(self, response: httpx.Response) -> None:
        response.read()
        self.responses.append(f"{response.headers}\n{response.text}")

    def channel(self, port: int) -> grpc.Channel:
        """The channel to a service on loopback, closed with the stack."""
        if port not in self._channels:
            self._channels[port] = grpc.insecure_channel(f"127.0.0.1:{port}")
        return self._channels[port]

    @property
    def scheduler(self) -> scheduler_service_pb2_grpc.SchedulerServiceStub:
        return scheduler_service_pb2_grpc.SchedulerServiceStub(self.channel(self.scheduler_port))

    @property
    def results(self) -> results_service_pb2_grpc.ResultsServiceStub:
        return results_service_pb2_grpc.ResultsServiceStub(self.channel(self.results_port))

    # -- jobs ------------------------------------------------------------------------------------------------------

    def get(self, path: str, **query: str | int) -> Any:
        """The JSON of a GET that must succeed."""
        with self.client() as client:
            answer = client.get(path, params=query)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def run(self, provider: str, model: str, suite: str, *, token: str = "", **body: Any) -> str:
        """Queues a job through REST; returns its id. `params` are the sampling parameters."""
        answer = self._post(provider, model, suite, token, body)
        assert answer.status_code == 200, f"POST /run: {answer.status_code} {answer.text}"
        return str(answer.json()["job_id"])

    def refused(self, provider: str, model: str, suite: str, *, token: str = "", **body: Any) -> str:
        """Why REST refuses to queue such a job."""
        answer = self._post(provider, model, suite, token, body)
        assert answer.status_code == 400, f"POST /run: {answer.status_code} {answer.text}"
        return str(answer.json()["detail"])

    def _post(self, provider: str, model: str, suite: str, token: str, body: dict[str, Any]) -> httpx.Response:
        config = {"provider": provider, "model": model}
        if (params := body.pop("params", None)) is not None:
            config["ollama_params"] = params
        with self.client(token) as client:
            return client.post("/run", json={"project_id": 1, "suite": suite, "config": config, **body})

    def job(self, job_id: str, token: str = "") -> job_pb2.Job:
        """The job as the scheduler has it."""
        request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
        return self.scheduler.GetJob(request, metadata=credentials(token), timeout=30).job

    def wait(
        self,
        job_id: str,
        timeout_s: float = 120,
        states: Collection[int] = FINISHED,
        token: str = "",
        every_s: float = 0.03,
    ) -> job_pb2.Job:
        """The job once it is finished, or in one of `states`. Looks `every_s`."""
        deadline = time.monotonic() + timeout_s
        while (job := self.job(job_id, token)).state not in states:
            if time.monotonic() > deadline:
                raise AssertionError(f"job {job_id} is {job.progress} after {timeout_s:g} s\n{self.tails()}")
            time.sleep(every_s)
        return job

    def completed(self, job_id: str, timeout_s: float = 120) -> dict[str, Any]:
        """The REST results of a job that must complete, as they are at its end. Lists have it when this returns."""
        job = self.wait(job_id, timeout_s)
        assert job.state == job_pb2.Job.STATE_COMPLETED, f"{job.reason}\n{self.tails()}"
        body: dict[str, Any] = self.get(f"/results/{job_id}")
        self.heard(job)
        return body

    def heard(self, job: job_pb2.Job) -> None:
        """Waits until the results service has heard of a job's state: lists follow the job by a moment."""
        request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job.job_id)

        def known() -> bool:
            try:
                stored = self.results.GetJob(request, timeout=30).job
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    raise
                return False
            return (stored.attempt, stored.state) == (job.attempt, job.state)

        until(known)

    def settled(self, job_id: str) -> bool:
        """Whether scheduler, results and stored items tell the same of a finished job: late answers still change what
        is told of one that ended early."""
        request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
        told = [self.job(job_id), self.results.GetJob(request, timeout=30).job]
        counts = {(job.attempt, job.state, job.progress.items_done, job.progress.items_failed) for job in told}
        return len(counts) == 1 and told[0].progress.items_done == len(self.items(job_id))

    def know_models(self, *endpoints: str) -> None:
        """Waits until these endpoints have told their models: until then a model's name alone leads nowhere."""

        def known() -> bool:
            listed = self.scheduler.ListEndpoints(scheduler_service_pb2.ListEndpointsRequest(), timeout=30).endpoints
            requests = [scheduler_service_pb2.ListModelsRequest(endpoint=name) for name in endpoints]
            return {*endpoints} <= {one.endpoint for one in listed} and all(
                self.scheduler.ListModels(request, timeout=30).models for request in requests
            )

        until(known)

    def kill(self, service: str) -> None:
        """Ends a service as kill -9 does, and waits until the launcher has started it again."""

        def pid() -> int:
            children = json.loads((self.state_dir / "children.json").read_text())["children"]
            return next((pid for name, (pid, _) in children.items() if name.startswith(service)), 0)

        before = pid()
        os.kill(before, signal.SIGKILL)
        until(lambda: pid() not in (0, before))

    def items(self, job_id: str, page_size: int = 500) -> list[results_service_pb2.StoredItem]:
        """Every stored item, page by page."""
        request = results_service_pb2.ListItemsRequest(job_id=job_id, page_size=page_size)
        found: list[results_service_pb2.StoredItem] = []
        while True:
            page = self.results.ListItems(request, timeout=30)
            found += page.items
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token


def touchstone(
    stack: Stack, *arguments: str, token: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The `touchstone` command as a user runs it, against the stack's services; `environment` is added to its own."""
    path = os.pathsep.join(str(ROOT / part) for part in ("client", "protos/gen", "."))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    own = {
        "PYTHONPATH": path,
        "TOUCHSTONE_SCHEDULER": f"127.0.0.1:{stack.scheduler_port}",
        "TOUCHSTONE_RESULTS": f"127.0.0.1:{stack.results_port}",
        "TOUCHSTONE_TOKEN": token,
    }
    return subprocess.run(
        [sys.executable, "-m", "deploy.command", *arguments],
        env=inherited | own | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def credentials(token: str) -> tuple[tuple[str, str], ...]:
    """Call metadata that names a user; empty in local mode."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def endpoints_file(path: Path, endpoints: Iterable[Endpoint]) -> Path:
    """Writes an endpoints file. JSON's texts, numbers and booleans are TOML's too."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key} = {json.dumps(held)}' for key, held in value.items())}}}"
        return json.dumps(value)

    tables = (
        "\n".join(["[[endpoint]]", *(f"{key} = {written(value)}" for key, value in table.items())])
        for table in endpoints
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(tables) + "\n")
    return path


def until(condition: Callable[[], object], timeout_s: float = 60, every_s: float = 0.05) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s")
        time.sleep(every_s)


@contextmanager
def running(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The stack while the tests of a fixture's scope run. Shows the ends of its logs when one of them failed."""
    failed_before = request.session.testsfailed
    try:
        yield stack.start()
    finally:
        reporter = request.config.pluginmanager.get_plugin("terminalreporter")
        if request.session.testsfailed > failed_before and reporter is not None:
            reporter.write_line(stack.tails())
        stack.stop()


def successive_ports(count: int) -> int:
    """The first of so many successive free ports."""
    while True:
        first = free_port()
        if all(is_free(first + place) for place in range(1, count)):
            return first


def _ports(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        port = free_port()
        if port not in found:
            found.append(port)
    return found
