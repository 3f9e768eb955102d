"""Users, quotas and the queue, through every process, where tokens are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from services import bus
from services.errors import UnavailableError
from tests.rows import write_mirror
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, credentials, running, touchstone, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

FOREVER_S = 3600.0
RUNNING_JOBS = 3
PENDING_PER_USER = 10
REQUESTS_PER_MINUTE = 100
QUEUE_FULL = {"detail": "Queue is full. Please try again later.", "retry_after": 300}


@dataclass
class World:
    """The stack and its users. Its only model answers nothing, so that jobs stay where they are."""

    stack: Stack
    folder: Path
    admin: str
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, user: str) -> str:
        if user not in self.tokens:
            self.tokens[user] = self.stack.create_token(user)
        return self.tokens[user]

    def client(self, user: str) -> httpx.Client:
        return self.stack.client(self.token(user))

    def run(self, user: str, **body: str) -> str:
        return self.stack.run("silent", "stub", "glue", token=self.token(user), tasks=["sst2"], **body)

    def queue(self) -> queue_pb2.Queue:
        request = scheduler_service_pb2.GetQueueRequest()
        return self.stack.scheduler.GetQueue(request, metadata=credentials(self.admin), timeout=10).queue

    def cancel_all(self) -> None:
        queue = self.queue()
        for job in (*reversed(queue.pending), *queue.running):
            request = scheduler_service_pb2.CancelJobRequest(job_id=job.job_id)
            with suppress(grpc.RpcError):
                self.stack.scheduler.CancelJob(request, metadata=credentials(self.admin), timeout=10)


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("limits")
    data_dir = write_mirror(folder / "data", {"sst2": 4})
    with stub_thread() as stubs:
        silent = stubs.start(OpenAIServer(Behaviour(latency_s=FOREVER_S)))
        endpoint: Endpoint = {"name": "silent", "kind": "openai", "base_url": silent.url, "concurrency": 2}
        stack = Stack(folder, [endpoint], data_dir, auth="token", requests_per_minute=REQUESTS_PER_MINUTE)
        with running(stack, request):
            made = World(stack, folder, stack.create_token("root", "admin"))
            yield made
            made.cancel_all()


@pytest.fixture
def idle(world: World) -> Iterator[World]:
    """Nothing runs or waits when the test begins."""
    yield world
    world.cancel_all()


def code(call: Callable[[], object]) -> grpc.StatusCode:
    """The status with which a call fails."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value.code()


# -- who asks ------------------------------------------------------------------------------------------------------


def test_a_request_without_a_valid_token_is_refused(world: World) -> None:
    body = {"project_id": 1, "suite": "glue", "config": {"provider": "silent", "model": "stub"}}
    for token in ("", "ts_made-up"):
        with world.stack.client(token) as client:
            for answer in (client.get("/results"), client.get("/leaderboard"), client.post("/run", json=body)):
                assert answer.status_code == 401
                assert set(answer.json()) == {"detail"}
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert not world.queue().pending
    assert not world.queue().running


def test_evaluators_find_stored_answers_and_the_command_shows_its_token(world: World) -> None:
    arguments = ("run", "--suite", "glue", "--endpoint", "baseline", "--model", "majority", "--tasks", "sst2")
    unknown = touchstone(world.stack, *arguments)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "Send a token" in unknown.stderr
    token = world.token("frank")
    first = touchstone(world.stack, *arguments, token=token)
    assert first.returncode == 0, first.stderr
    again = touchstone(world.stack, "rescore", first.stdout.splitlines()[0], token=token)
    assert again.returncode == 0, again.stderr
    assert "4 answers came from the store" in again.stderr
    assert again.stdout.splitlines()[1:] == first.stdout.splitlines()[1:]
    assert world.stack.job(again.stdout.splitlines()[0], token).owner == "frank"


def test_a_token_is_taken_from_either_header(world: World) -> None:
    token = world.token("erin")
    for headers in ({"Authorization": f"Bearer {token}"}, {"X-API-Key": token}):
        with world.stack.client() as client:
            assert client.get("/results", headers=headers).status_code == 200


async def test_nats_asks_for_its_token_too(world: World) -> None:
    with pytest.raises(UnavailableError, match="refuses the token"):
        await bus.connect(f"nats://127.0.0.1:{world.stack.nats_port}", "stranger", timeout_s=1)
    for private in ("nats-url", "nats.conf", "nats-token"):
        assert (world.stack.state_dir / private).stat().st_mode & 0o777 == 0o600


def test_a_page_without_a_session_leads_to_the_login(world: World) -> None:
    answer = httpx.get(world.stack.url, trust_env=False, headers={"Accept": "text/html"})
    assert answer.status_code in (302, 303, 307)
    assert answer.headers["Location"].startswith("/login")
    assert httpx.get(f"{world.stack.url}/login", trust_env=False).status_code == 200


def test_a_revoked_token_ends_within_seconds_and_none_is_stored_as_text(world: World) -> None:
    token = world.token("mallory")
    with world.client("mallory") as client:
        assert client.get("/results").status_code == 200
        world.stack.tokens("revoke", "of-mallory")
        until(lambda: client.get("/results").status_code == 401, every_s=0.5)
    files = [path for path in world.stack.state_dir.rglob("*") if path.is_file()]
    assert any(b"mallory" in path.read_bytes() for path in files), "the store was searched"
    assert not [path for path in files if token.encode() in path.read_bytes()]


def test_grpc_needs_a_token_too_except_for_health_and_reflection(world: World) -> None:
    listing, jobs = scheduler_service_pb2.ListJobsRequest(), results_service_pb2.ResultsServiceListJobsRequest()
    for metadata in ((), credentials("ts_made-up")):
        for call in (
            lambda m=metadata: world.stack.scheduler.ListJobs(listing, metadata=m, timeout=10),
            lambda m=metadata: world.stack.results.ListJobs(jobs, metadata=m, timeout=10),
            lambda m=metadata: list(
                world.stack.scheduler.WatchJob(
                    scheduler_service_pb2.WatchJobRequest(job_id="x"), metadata=m, timeout=10
                )
            ),
        ):
            assert code(call) == grpc.StatusCode.UNAUTHENTICATED
    for port in (world.stack.scheduler_port, world.stack.results_port):
        channel = world.stack.channel(port)
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        assert any(
            name.startswith("touchstone.v1.") for name in ProtoReflectionDescriptorDatabase(channel).get_services()
        )


def test_a_grpc_client_works_as_its_tokens_user_and_as_no_other(idle: World) -> None:
    spec = job_pb2.JobSpec(endpoint="silent", model="stub")
    spec.suite.CopyFrom(job_pb2.SuiteWork(suite="glue", tasks=["sst2"]))
    metadata = (*credentials(idle.token("frank")), ("touchstone-user", "root"), ("touchstone-role", "admin"))
    create = scheduler_service_pb2.CreateJobRequest(spec=spec)
    job = idle.stack.scheduler.CreateJob(create, metadata=metadata, timeout=10).job
    assert job.owner == "frank", "only services may speak for others"

    cancel = scheduler_service_pb2.CancelJobRequest(job_id=job.job_id)
    other = credentials(idle.token("erin"))
    denied = code(lambda: idle.stack.scheduler.CancelJob(cancel, metadata=other, timeout=10))
    assert denied == grpc.StatusCode.PERMISSION_DENIED
    assert idle.stack.job(job.job_id, idle.token("erin")).owner == "frank", "reads are open"
    cancelled = idle.stack.scheduler.CancelJob(cancel, metadata=credentials(idle.token("frank")), timeout=10).job
    assert cancelled.state == job_pb2.Job.STATE_CANCELLED


# -- the queue -----------------------------------------------------------------------------------------------------


def test_three_jobs_run_and_a_user_may_have_ten_more_waiting(idle: World) -> None:
    job_ids = [idle.run("alice") for _ in range(RUNNING_JOBS + PENDING_PER_USER)]
    until(lambda: len(idle.queue().running) == RUNNING_JOBS)
    queue = idle.queue()
    assert {job.job_id for job in queue.running} == set(job_ids[:RUNNING_JOBS])
    assert [job.job_id for job in queue.pending] == job_ids[RUNNING_JOBS:]

    body = {"project_id": 1, "suite": "glue", "config": {"provider": "silent", "model": "stub"}}
    with idle.client("alice") as client:
        full = client.post("/run", json=body)
        fourth = client.get(f"/results/{job_ids[3]}").json()
        # The list follows the audit trail, some ten milliseconds behind. Asked seldom, as requests are counted.
        pending = {"status": "pending"}
        until(lambda: client.get("/results", params=pending).json()["total"] == PENDING_PER_USER, every_s=1)
    assert (full.status_code, full.json()) == (429, QUEUE_FULL)
    assert full.headers["Retry-After"] == "300"
    assert (fourth["status"], fourth["progress"]["queue_position"]) == ("pending", 1)

    of_bob = idle.run("bob")
    with idle.client("bob") as client:
        assert client.get(f"/results/{of_bob}").json()["status"] == "pending"
        assert client.post(f"/cancel/{job_ids[0]}").status_code == 403
        assert client.get(f"/results/{job_ids[0]}").json()["status"] == "running"

    # Users take turns: the next place is for who has no running job.
    with idle.client("alice") as client:
        assert client.post(f"/cancel/{job_ids[0]}").status_code == 200
        until(lambda: client.get(f"/results/{of_bob}").json()["status"] == "running", every_s=1)
        assert client.get(f"/results/{job_ids[3]}").json()["status"] == "pending"
        assert client.post(f"/cancel/{job_ids[1]}").status_code == 200
        until(lambda: client.get(f"/results/{job_ids[3]}").json()["status"] == "running", every_s=1)
        assert client.post("/run", json=body).status_code == 200, "one place in the queue is free again"
    assert len(idle.queue().running) == RUNNING_JOBS


def test_waiting_jobs_start_by_priority_then_age(idle: World) -> None:
    running = [idle.run("grace") for _ in range(RUNNING_JOBS)]
    until(lambda: len(idle.queue().running) == RUNNING_JOBS)
    low, normal, high = (idle.run("grace", priority=priority) for priority in ("low", "normal", "high"))
    late = idle.run("grace", priority="normal")
    assert [job.job_id for job in idle.queue().pending] == [high, normal, late, low]
    with idle.client("grace") as client:
        assert client.post(f"/cancel/{running[1]}").status_code == 200
    until(lambda: high in {job.job_id for job in idle.queue().running})


# -- the rate ------------------------------------------------------------------------------------------------------


def test_the_101st_request_of_a_user_in_a_minute_is_refused_and_others_are_not(world: World) -> None:
    with world.client("carol") as carol, world.client("dave") as dave:
        assert dave.get("/results").status_code == 200
        answers = [carol.get("/results", params={"limit": 1}) for _ in range(REQUESTS_PER_MINUTE + 1)]
        assert [answer.status_code for answer in answers[:-1]] == [200] * REQUESTS_PER_MINUTE
        refused = answers[-1]
        assert refused.status_code == 429
        assert 1 <= refused.json()["retry_after"] <= 60
        assert refused.headers["Retry-After"] == str(refused.json()["retry_after"])
        assert refused.json()["detail"]
        assert dave.get("/results").status_code == 200
    assert httpx.get(f"{world.stack.url}/readyz", trust_env=False).status_code == 200
