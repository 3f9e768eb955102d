"""What users are told when something fails: one sentence with its remedy, the same by REST and on the page."""

from __future__ import annotations

import html
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.local.ports import free_port
from services.words.enums import MODES
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import CALL_TIMEOUT_S, Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

FOREVER_S = 3600.0
FAILED: dict[str, str] = {
    "away": r"away does not answer at 127\.0\.0\.1:\d+\. Start the server or correct base_url in the endpoints file\.",
    "refusing": r"refusing refused the key \([^()]+\)\. Set STUB_KEY where the evaluator runs and restart it\.",
    "broken": r"broken failed with status 500: boom\. Check its log or status page, then retry\.",
    "silent": r"Job execution failed: Resource limits exceeded\. Stopped after 1 second with 0 of 8 items done\. "
    r"A retry runs the rest\.",
}
"""Why a job fails, by its endpoint: no connection, a refused key, an error of the model's API, too long."""
SERVICES = {
    "services.results": "The results service does not answer. Nothing is lost. Try again in a moment.",
    "services.scheduler": "The scheduler does not answer. Running jobs continue. Try again in a moment.",
}


class World:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.web = httpx.Client(
            base_url=stack.url, trust_env=False, timeout=3 * CALL_TIMEOUT_S, headers={"Accept": "text/html"}
        )

    def page(self, address: str) -> str:
        return bare(self.web.get(address).text)

    def start(self, endpoint: str, time_limit_s: int = 0) -> str:
        spec = job_pb2.JobSpec(
            endpoint=endpoint,
            model="stub",
            mode=MODES["generate"],
            suite=job_pb2.SuiteWork(suite="demo", limit=2),
            time_limit_s=time_limit_s,
        )
        return self.stack.scheduler.CreateJob(scheduler_service_pb2.CreateJobRequest(spec=spec), timeout=30).job.job_id

    def sent(self, **fields: str) -> httpx.Response:
        form = {"endpoint": "silent", "model": "stub", "suite": "demo", "limit": "2"} | fields
        return self.web.post("/run", data=form, headers={"Origin": self.stack.url})

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        """A process of the stack that does not answer."""
        (pid,) = (pid for pid in _children(self.stack) if service in _command(pid))
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def bare(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def _children(stack: Stack) -> list[int]:
    assert stack._process is not None
    tasks = Path(f"/proc/{stack._process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def _command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with stub_thread() as stubs:
        servers = {
            "refusing": Behaviour(api_key="another"),
            "broken": Behaviour(always=Fault("500", message="boom")),
            "silent": Behaviour(latency_s=FOREVER_S),
            "limited": Behaviour(always=Fault("429", retry_after="2")),
        }
        urls = {name: stubs.start(OpenAIServer(behaviour)).url for name, behaviour in servers.items()}
        urls["away"] = f"http://127.0.0.1:{free_port()}"
        endpoints: list[Endpoint] = [
            {"name": name, "kind": "openai", "base_url": url, "api_key_env": "STUB_KEY"} for name, url in urls.items()
        ]
        # Silence is told before the launcher restarts a frozen service.
        environment = {"STUB_KEY": "key", "TOUCHSTONE_CALL_TIMEOUT_S": "2"}
        with running(Stack(tmp_path_factory.mktemp("told"), endpoints, environment=environment), request) as stack:
            stack.know_models("silent")
            yield World(stack)


def test_every_failure_is_told_with_its_remedy_by_rest_and_on_pages(world: World) -> None:
    ids = {name: world.start(name, time_limit_s=1 if name == "silent" else 0) for name in FAILED}
    for name, words in FAILED.items():
        assert world.stack.wait(ids[name]).state == job_pb2.Job.STATE_FAILED, name
        told = world.stack.get(f"/results/{ids[name]}")["error"]
        assert re.fullmatch(words, told), told
        assert told in world.page(f"/jobs/{ids[name]}"), name
        assert "Try again" in world.page(f"/jobs/{ids[name]}"), name


def test_a_providers_rate_limit_delays_the_job_and_says_until_when(world: World) -> None:
    job_id = world.start("limited")
    said = re.compile(r"limited delays the job: .*rate limit, next call in \d+ s.* The job continues by itself")
    world.stack.wait(job_id, states={job_pb2.Job.STATE_RUNNING})
    until(lambda: said.search(world.page(f"/jobs/{job_id}")) is not None)
    with world.stack.client() as client:
        assert client.post(f"/cancel/{job_id}").status_code == 200


@pytest.mark.parametrize(
    ("fields", "body", "words"),
    [
        ({"temperature": "9"}, {"ollama_params": {"temperature": 9}}, "emperature must be between 0 and 2."),
        (None, {"ollama_params": {"top_k": -1}}, "must be between 0 and 100."),
        ({"custom": "[1"}, None, 'Custom JSON must be an object, such as {"reasoning_effort": "low"}.'),
        (None, {"model": "another"}, "silent does not have model another. Choose one of its models."),
        (None, {"provider": "nowhere"}, "nowhere"),
    ],
)
def test_a_wrong_field_is_told_with_what_it_may_be(
    world: World, fields: dict[str, str] | None, body: dict[str, object] | None, words: str
) -> None:
    if fields is not None:
        answer = world.sent(**fields)
        assert (answer.status_code, words in bare(answer.text)) == (422, True)
    if body is not None:
        asked = {"project_id": 1, "suite": "demo", "config": {"provider": "silent", "model": "stub"} | body}
        with world.stack.client() as client:
            refused = client.post("/run", json=asked)
        assert refused.status_code in (400, 422)
        assert words in refused.json()["detail"]


def test_a_full_queue_is_told_by_rest_and_on_the_form(world: World) -> None:
    asked = {"project_id": 1, "suite": "demo", "config": {"provider": "silent", "model": "stub"}}
    made: list[str] = []
    with world.stack.client() as client:
        while (answer := client.post("/run", json=asked)).status_code == 200:
            made.append(answer.json()["job_id"])
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "300")
        assert answer.json() == {"detail": "Queue is full. Please try again later.", "retry_after": 300}
        assert "Queue is full. Please try again later." in bare(world.sent().text)
        for job_id in reversed(made):
            client.post(f"/cancel/{job_id}")


@pytest.mark.parametrize("service", SERVICES)
def test_a_silent_service_is_told_by_rest_and_on_pages(world: World, service: str) -> None:
    address = {"services.results": "/history", "services.scheduler": "/queue"}[service]
    page = {"services.results": "/leaderboard?suite=demo", "services.scheduler": "/queue"}[service]
    with world.frozen(service), world.stack.client() as client:
        answer = client.get(address)
        assert (answer.status_code, answer.json()["detail"]) == (503, SERVICES[service])
        assert SERVICES[service] in world.page(page)
