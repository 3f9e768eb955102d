"""Two users and an admin where reads are closed: jobs, logs, queue, schedules and webhooks of each are their own."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.rows import write_mirror
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.servers.webhook_receiver import Receiver, receiving
from tests.stack import Endpoint, Stack, credentials, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

pytestmark = pytest.mark.stack

RUNNING_JOBS, PENDING_PER_USER = 3, 10
KEY = "canary-secret-of-the-provider"


@contextmanager
def receiver_thread() -> Iterator[Receiver]:
    """A receiver in a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    ready: list[Receiver] = []
    done = asyncio.Event()

    async def serve() -> None:
        async with receiving() as receiver:
            ready.append(receiver)
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    until(lambda: ready)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)


@dataclass
class World:
    """The stack, its users, a model that never answers and a receiver of webhooks."""

    stack: Stack
    receiver: Receiver
    tokens: dict[str, str]

    def call(self, user: str, method: str, request: Any) -> Any:
        return getattr(self.stack.scheduler, method)(request, metadata=credentials(self.tokens[user]), timeout=10)

    def refusal(self, user: str, method: str, request: Any) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError) as refused:
            self.call(user, method, request)
        return refused.value.code()

    def create(self, user: str, endpoint: str = "silent", model: str = "stub", **more: Any) -> pb.CreateJobResponse:
        suite = job_pb2.SuiteWork(suite="glue", tasks=["sst2"])
        spec = job_pb2.JobSpec(endpoint=endpoint, model=model, suite=suite, **more)
        made: pb.CreateJobResponse = self.call(user, "CreateJob", pb.CreateJobRequest(spec=spec))
        return made


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("users")
    data_dir = write_mirror(folder / "data", {"sst2": 4})
    with stub_thread() as stubs, receiver_thread() as receiver:
        silent = stubs.start(OpenAIServer(Behaviour(latency_s=3600)))
        endpoints: list[Endpoint] = [
            {"name": "silent", "kind": "openai", "base_url": silent.url, "concurrency": 2},
            {"name": "refusing", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "CANARY_KEY"},
        ]
        environment = {
            "TOUCHSTONE_READS": "own",
            "TOUCHSTONE_WEBHOOKS_PRIVATE": "1",
            "TOUCHSTONE_FIRST_OUTAGE_S": "2",
            "CANARY_KEY": KEY,
        }
        stack = Stack(folder, endpoints, data_dir, auth="token", environment=environment)
        with running(stack, request):
            tokens = {user: stack.create_token(user) for user in ("alice", "bob")}
            made = World(stack, receiver, tokens | {"root": stack.create_token("root", "admin")})
            yield made


@pytest.fixture(autouse=True)
def _idle(world: World) -> Iterator[None]:
    yield
    queue = world.call("root", "GetQueue", pb.GetQueueRequest()).queue
    for job in (*reversed(queue.pending), *queue.running):
        with suppress(grpc.RpcError):
            world.call("root", "CancelJob", pb.CancelJobRequest(job_id=job.job_id))


def test_a_full_queue_of_one_user_leaves_the_others_place_and_limit_alone(world: World) -> None:
    def queued() -> tuple[int, int]:
        queue = world.call("root", "GetQueue", pb.GetQueueRequest()).queue
        return len(queue.running), len(queue.pending)

    for _ in range(RUNNING_JOBS):
        world.create("alice")
    until(lambda: queued() == (RUNNING_JOBS, 0))
    for _ in range(PENDING_PER_USER):
        world.create("alice")
    spec = job_pb2.JobSpec(endpoint="silent", model="stub", suite=job_pb2.SuiteWork(suite="glue"))
    assert world.refusal("alice", "CreateJob", pb.CreateJobRequest(spec=spec)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    own = world.create("bob").job

    queue = world.call("bob", "GetQueue", pb.GetQueueRequest()).queue
    # Users take turns: the next place is for who has no running job.
    assert [job.job_id for job in queue.pending] == [own.job_id] + [""] * PENDING_PER_USER
    assert [job.progress.queue_position for job in queue.pending] == list(range(1, PENDING_PER_USER + 2))
    others = [*queue.running, *queue.pending[1:]]
    assert {job.owner or job.spec.model or job.spec.endpoint for job in others} == {""}
    assert {job.owner for job in world.call("root", "GetQueue", pb.GetQueueRequest()).queue.pending} == {"alice", "bob"}


def test_jobs_of_others_are_not_found_and_cannot_be_touched(world: World) -> None:
    job_id = world.create("alice", project_id=7).job.job_id
    for method, request in (
        ("GetJob", pb.GetJobRequest(job_id=job_id)),
        ("CancelJob", pb.CancelJobRequest(job_id=job_id)),
        ("RetryJob", pb.RetryJobRequest(job_id=job_id)),
        ("ListJobLogs", pb.ListJobLogsRequest(job_id=job_id)),
    ):
        assert world.refusal("bob", method, request) == grpc.StatusCode.NOT_FOUND, method
    with pytest.raises(grpc.RpcError) as hidden:
        next(
            iter(
                world.stack.scheduler.WatchJob(
                    pb.WatchJobRequest(job_id=job_id), metadata=credentials(world.tokens["bob"]), timeout=10
                )
            )
        )
    assert hidden.value.code() == grpc.StatusCode.NOT_FOUND
    spec = job_pb2.JobSpec(
        endpoint="silent",
        model="stub",
        suite=job_pb2.SuiteWork(suite="glue", tasks=["sst2"]),
        reuse=job_pb2.Reuse(job_id=job_id),
    )
    assert world.refusal("bob", "CreateJob", pb.CreateJobRequest(spec=spec)) == grpc.StatusCode.NOT_FOUND

    def listed(user: str, **query: Any) -> list[str]:
        return [job.job_id for job in world.call(user, "ListJobs", pb.ListJobsRequest(**query)).jobs]

    assert job_id not in listed("bob") + listed("bob", owner="alice")
    assert listed("alice", project_id=7) == listed("root", project_id=7) == [job_id]
    assert listed("alice", project_id=8) == []
    assert world.call("root", "CancelJob", pb.CancelJobRequest(job_id=job_id)).job.state == job_pb2.Job.STATE_CANCELLED


def test_logs_tell_a_jobs_way_through_all_services_and_no_key(world: World) -> None:
    job_id = world.create("alice", endpoint="baseline", model="majority").job.job_id
    world.stack.wait(job_id, token=world.tokens["alice"])
    failing = world.create("alice", endpoint="refusing", model="m").job.job_id
    world.stack.wait(failing, token=world.tokens["alice"])

    def lines(job: str, **query: Any) -> list[pb.LogLine]:
        answer = world.call("alice", "ListJobLogs", pb.ListJobLogsRequest(job_id=job, **query))
        return list(answer.lines)

    def told(source: str, text: str) -> bool:
        return any(line.source.split()[0] == source and line.text.startswith(text) for line in lines(job_id))

    # Each service stores its lines at its own pace.
    for source, text in (
        ("scheduler", "created"),
        ("scheduler", "planning"),
        ("scheduler", "running"),
        ("scheduler", "sst2: 4 items done"),
        ("scheduler", "finalizing"),
        ("scheduler", "completed"),
        ("evaluator", "planned 1 task of 4 items"),
        ("evaluator", "sst2 starts here"),
    ):
        until(partial(told, source, text))
    assert len(lines(job_id)) < 20, "a few lines a job, whatever its size"
    until(lambda: any(line.level == "error" for line in lines(failing, level="error")))
    until(lambda: any("a call has failed" in line.text for line in lines(failing, level="warning")))
    assert {line.level for line in lines(failing, level="warning")} <= {"warning", "error"}
    assert KEY not in str(lines(failing))
    assert {line.text for line in world.call("root", "ListJobLogs", pb.ListJobLogsRequest(job_id=job_id)).lines}


def test_schedules_are_their_owners(world: World) -> None:
    spec = job_pb2.JobSpec(endpoint="silent", model="stub", suite=job_pb2.SuiteWork(suite="glue", tasks=["sst2"]))
    request = pb.CreateScheduleRequest(cron="0 3 * * *", time_zone="Europe/Zurich", spec=spec, label="nightly")
    made = world.call("alice", "CreateSchedule", request).schedule
    assert (made.owner, made.spec.priority) == ("alice", job_pb2.PRIORITY_LOW)
    spec.priority = job_pb2.PRIORITY_HIGH
    raised = pb.CreateScheduleRequest(cron="0 3 * * *", spec=spec)
    assert world.refusal("alice", "CreateSchedule", raised) == grpc.StatusCode.PERMISSION_DENIED
    assert not world.call("bob", "ListSchedules", pb.ListSchedulesRequest()).schedules
    delete = pb.DeleteScheduleRequest(schedule_id=made.schedule_id)
    assert world.refusal("bob", "DeleteSchedule", delete) == grpc.StatusCode.NOT_FOUND
    assert len(world.call("root", "ListSchedules", pb.ListSchedulesRequest()).schedules) == 1
    world.call("root", "DeleteSchedule", delete)
    assert not world.call("alice", "ListSchedules", pb.ListSchedulesRequest()).schedules


def test_only_admins_start_experiments(world: World) -> None:
    definition = {
        "name": "greetings",
        "models": ["silent/stub"],
        "prompts": [{"id": "plain", "template": "Greet {{who}}."}],
        "scenarios": [{"who": "Ada"}],
    }
    request = pb.RunExperimentRequest(definition=json.dumps(definition))
    assert world.refusal("alice", "RunExperiment", request) == grpc.StatusCode.PERMISSION_DENIED
    (made,) = world.call("root", "RunExperiment", request).jobs
    assert (made.owner, made.spec.experiment_name) == ("root", "greetings")
    cancel = pb.CancelJobRequest(job_id=made.job_id)
    assert world.refusal("alice", "CancelJob", cancel) == grpc.StatusCode.NOT_FOUND
    world.call("root", "CancelJob", cancel)
    spec = job_pb2.JobSpec(endpoint="silent", model="stub", experiment_name="greetings")
    spec.dataset.dataset_id = made.spec.dataset.dataset_id
    posing = pb.CreateJobRequest(spec=spec)
    assert world.refusal("alice", "CreateJob", posing) == grpc.StatusCode.INVALID_ARGUMENT


def test_webhooks_tell_their_owner_alone_and_a_jobs_own_url_is_shown_to_nobody_else(world: World) -> None:
    url = world.receiver.url
    secrets = {
        user: world.call(user, "CreateWebhook", pb.CreateWebhookRequest(url=f"{url}/{user}")).secret
        for user in ("alice", "bob")
    }
    made = world.create("alice", endpoint="baseline", model="majority", webhook_url=f"{url}/once?token=abc")
    job_id = made.job.job_id
    world.stack.wait(job_id, token=world.tokens["alice"])
    until(lambda: {call.path for call in world.receiver.calls} == {"/alice", "/once"})
    time.sleep(0.5)
    (own,), (once,) = world.receiver.to("/alice"), world.receiver.to("/once")
    assert world.receiver.to("/bob") == []
    for call, secret in ((own, secrets["alice"]), (once, made.webhook_secret)):
        signed = call.headers["Touchstone-Timestamp"].encode() + b"." + call.body
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        assert call.headers["Touchstone-Signature"] == f"v1={expected}"
        told = json.loads(call.body)
        assert (told["event"], told["job"]["job_id"], told["job"]["owner"]) == ("job.completed", job_id, "alice")
    listed = world.call("alice", "ListWebhooks", pb.ListWebhooksRequest())
    assert [hook.owner for hook in listed.webhooks] == ["alice"]
    assert secrets["alice"] not in str(listed)
    everything = "".join(log.read_text(errors="replace") for log in _logs(world.stack))
    assert not [secret for secret in (*secrets.values(), made.webhook_secret, "token=abc") if secret in everything]
    assert not any("token=abc" in answer for answer in _reads(world, job_id))


def _logs(stack: Stack) -> list[Path]:
    return sorted((stack.state_dir / "logs").glob("*.log"))


def _reads(world: World, job_id: str) -> list[str]:
    """What results keeps of a job, as an admin is shown it."""
    with world.stack.client(world.tokens["root"]) as client:
        return [client.get(f"/results/{job_id}").text, client.get("/results").text]
