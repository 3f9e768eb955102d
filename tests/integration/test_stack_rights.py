"""Everything that users, operators and crashes make an installation do, with the least rights at NATS: NATS refuses
nothing. With TOUCHSTONE_LEAST_RIGHTS=1, all other tests of whole installations run so, too."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from tests.integration.test_stack_users import receiver_thread
from tests.rows import DATASET, write_mirror
from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import Behaviour
from tests.servers.webhook_receiver import Receiver
from tests.stack import Endpoint, Stack, running, successive_ports, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2
from touchstone_client import Client, ClientError, NotAllowedError, Settings, suite_spec

pytestmark = pytest.mark.stack

ROWS = 60
RUBRIC = {"version": "v1", "criteria": [{"name": "tone"}]}
LINES = "\n".join(
    json.dumps({"custom_id": f"r{n}", "messages": [{"role": "user", "content": f"Say {n}"}], "reference": str(n)})
    for n in range(ROWS)
)


@dataclass(frozen=True)
class World:
    stack: Stack
    client: Client
    stub: OpenAIBatchServer
    receiver: Receiver
    token: str
    metrics_port: int

    def ends(self, job_id: str, state: str = "COMPLETED") -> None:
        job = self.client.wait(job_id, timeout_s=120)
        assert job.state == job_pb2.Job.State.Value(f"STATE_{state}"), job

    def command(self, *words: str, service: str) -> str:
        """What an operator runs on the machine of a service."""
        environment = self.stack._environment | self.stack.as_service(service)
        command = (sys.executable, "-m", "deploy.command", *words)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("rights")
    first = successive_ports(5)
    environment = {
        "TOUCHSTONE_WEBHOOKS_PRIVATE": "1",
        "TOUCHSTONE_METRICS_PORT": str(first),
        "TOUCHSTONE_REPLICA_S": "1",
        "TOUCHSTONE_REPLICA_PORT": str(free_port()),
        "TOUCHSTONE_BATCH_POLL_S": "0.1",
        "TOUCHSTONE_BATCH_MOST_POLL_S": "0.3",
        "TOUCHSTONE_ACK_WAIT_S": "2",
    }
    data = write_mirror(folder / "data", {"sst2": 20})
    with stub_thread() as stubs, receiver_thread() as receiver:
        behaviour = Behaviour(models=("small",), answer=lambda prompt: prompt.split()[-1])
        stub = stubs.start(OpenAIBatchServer(behaviour))
        local: Endpoint = {"name": "local", "kind": "openai", "base_url": stub.url, "requests_per_minute": 100_000}
        made = Stack(folder, [local], data, evaluators=2, auth="token", environment=environment, rights=True)
        with running(made, request) as stack:
            token = stack.create_token("root", "admin")
            settings = Settings(f"127.0.0.1:{stack.scheduler_port}", f"127.0.0.1:{stack.results_port}", token)
            with Client(settings) as client:
                until(lambda: any(list(client.models("local"))))
                yield World(stack, client, stub, receiver, token, first)


@pytest.fixture(autouse=True)
def _nothing_refused(world: World) -> Iterator[None]:
    yield
    assert world.stack.violations() == []


@pytest.fixture(scope="module")
def dataset(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("dataset") / "rows.jsonl"
    file.write_text(LINES)
    return str(world.client.upload_dataset(file).dataset_id)


def spec(dataset: str, *, provider_batch: bool = False) -> job_pb2.JobSpec:
    work = job_pb2.DatasetWork(dataset_id=dataset)
    return job_pb2.JobSpec(endpoint="local", model="small", dataset=work, provider_batch=provider_batch)


def test_suites_run_are_marked_and_tell_webhooks(world: World) -> None:
    client = world.client
    webhook, _ = client.create_webhook(f"{world.receiver.url}/told")
    job = client.run(suite_spec("demo", endpoint="baseline", model="majority"))
    world.ends(job.job_id)
    until(lambda: world.receiver.to("/told"))
    item = next(iter(client.items(job.job_id)))
    client.annotate(job.job_id, item.task, item.result.item, "wrong", note="no")
    client.mark(job.job_id, "invalidated", "for a test")
    assert list(client.logs(job.job_id))
    assert list(client.events(job.job_id))
    assert list(client.webhooks())
    client.delete_webhook(webhook.webhook_id)
    client.delete(job.job_id)


def test_jobs_are_cancelled_retried_and_run_again(world: World, dataset: str) -> None:
    client = world.client
    world.stub.behaviour.latency_s = 0.2
    try:
        job = client.run(spec(dataset))
        until(lambda: client.job(job.job_id).progress.items_done)
        client.cancel(job.job_id)
        world.ends(job.job_id, "CANCELLED")
    finally:
        world.stub.behaviour.latency_s = 0.0
    client.retry(job.job_id)
    world.ends(job.job_id)
    world.ends(client.rescore(job.job_id).job_id)
    world.ends(client.judge(job.job_id, endpoint="local", model="small", rubric=RUBRIC).job_id)
    assert client.estimate(job.job_id)


def test_datasets_come_from_files_and_the_hub_and_go_through_a_batch_api(world: World, dataset: str) -> None:
    client = world.client
    hub = client.create_hub_dataset(DATASET, config="sst2", split="validation", template="{{sentence}}", limit=5)
    assert len(list(client.dataset_rows(hub.dataset_id))) == 5
    job = client.run(spec(dataset, provider_batch=True))
    world.ends(job.job_id)
    assert world.stub.batches
    client.delete_dataset(hub.dataset_id)
    until(lambda: hub.dataset_id not in {one.dataset_id for one in client.datasets()})


def test_schedules_evaluators_and_keys_are_managed(world: World) -> None:
    client = world.client
    schedule = client.create_schedule("0 3 * * *", suite_spec("demo", endpoint="baseline", model="random"))
    client.pause_schedule(schedule.schedule_id)
    client.resume_schedule(schedule.schedule_id)
    client.delete_schedule(schedule.schedule_id)
    client.drain_evaluator("evaluator-2")
    until(lambda: {one.evaluator: one for one in client.evaluators()}["evaluator-2"].draining)
    client.resume_evaluator("evaluator-2")
    assert list(client.set_aside_messages()) == []
    world.command("token", "create", "--user", "bob", "--label", "of-bob", service="gateway")
    assert "of-bob" in world.command("token", "list", service="gateway")
    world.command("token", "revoke", "of-bob", service="gateway")


def test_calls_are_made_and_recorded(world: World) -> None:
    import openai

    with openai.OpenAI(base_url=f"{world.stack.url}/v1", api_key=world.token, max_retries=0) as made:
        answer = made.chat.completions.create(
            model="small@local",
            messages=[{"role": "user", "content": "Say 7"}],
            max_completion_tokens=5,
            extra_headers={"X-Touchstone-Run": "support"},
        )
    assert answer.choices[0].message.content == "7"
    until(lambda: [run.name for run in world.client.recorded_runs()] == ["support"])
    assert world.client.close_recorded_run("support")


def test_pages_and_their_events_are_shown_to_who_logs_in(world: World) -> None:
    url = world.stack.url
    with httpx.Client(base_url=url, headers={"Origin": url}, trust_env=False, timeout=30) as browser:
        assert browser.post("/login", data={"token": world.token}).status_code == 303
        page = browser.get("/settings")
        assert page.status_code == 200
        with browser.stream("GET", "/events?page=/history") as events:
            assert events.status_code == 200, events.read()
            next(events.iter_raw())
        csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert csrf is not None
        form = {"csrf": csrf[1], "user": "carol", "role": "user", "label": "of-carol", "days": ""}
        assert browser.post("/settings/tokens", data=form).status_code in (200, 303)
        assert browser.post("/logout", data={"csrf": csrf[1]}).status_code == 303


def test_the_copy_is_read_with_a_token(world: World, dataset: str) -> None:
    job = world.client.run(spec(dataset))
    world.ends(job.job_id)
    scheduler = f"127.0.0.1:{world.stack.scheduler_port}"
    address = f"127.0.0.1:{world.stack._environment['TOUCHSTONE_REPLICA_PORT']}"
    with Client(Settings(scheduler, address, world.token)) as copy:
        until(lambda: readable(copy, job.job_id))
        assert len(list(copy.items(job.job_id))) == ROWS
        assert len(list(copy.dataset_rows(dataset))) == ROWS
        assert list(copy.datasets())
        assert copy.leaderboard("demo") is not None
    with pytest.raises(NotAllowedError), Client(Settings(scheduler, address, "ts_wrong")) as stranger:
        list(stranger.datasets())


def readable(copy: Client, job_id: str) -> bool:
    """Whether the copy is there, and has the job."""
    try:
        return bool(copy.result(job_id).sealed)
    except ClientError:
        return False


def test_a_backup_is_made_and_metrics_are_shown(world: World) -> None:
    assert "backup" in world.command("backup", service="results")
    for place in range(5):
        answer = httpx.get(f"http://127.0.0.1:{world.metrics_port + place}/metrics", trust_env=False)
        assert answer.status_code == 200
        assert "touchstone_nats_connected 1" in answer.text


def test_each_service_crashes_and_its_successor_needs_no_more(world: World, dataset: str) -> None:
    world.stub.behaviour.latency_s = 0.3
    try:
        job = world.client.run(spec(dataset))
        for service in ("evaluator-1", "scheduler", "results", "evaluator-2", "gateway", "nats"):
            world.stack.kill(service)
    finally:
        world.stub.behaviour.latency_s = 0.0
    world.ends(job.job_id)
    assert len(list(world.client.items(job.job_id))) == ROWS
