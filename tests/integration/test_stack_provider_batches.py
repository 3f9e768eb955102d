"""A dataset through a provider's batch API and every process: each row once and one batch, whatever is killed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers.openai_batch_server import OpenAIBatchServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import dataset_pb2, dataset_service_pb2, dataset_service_pb2_grpc, job_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

MODEL = "small"
ROWS = 500
PATCH = Path(__file__).parents[1] / "chaos" / "patches" / "batch_crash"


class World:
    """The stack, the provider, and where crashes are asked for."""

    def __init__(self, stack: Stack, stub: OpenAIBatchServer, crashes: Path) -> None:
        self.stack, self.stub, self.crashes = stack, stub, crashes
        self.before = 0

    def batches(self) -> list[dict[str, Any]]:
        """Those since the test began."""
        return list(self.stub.batches.values())[self.before :]

    def begin(self, **spec: Any) -> str:
        self.before = len(self.stub.batches)
        dataset = dataset_service_pb2_grpc.DatasetServiceStub(self.stack.channel(self.stack.results_port))
        lines = [
            {"custom_id": f"own-{i}", "messages": [{"role": "user", "content": f"Say {i}"}], "reference": str(i)}
            for i in range(ROWS)
        ]
        data = "\n".join(map(json.dumps, lines)).encode()
        options = dataset_pb2.DatasetOptions(name="batch.jsonl")
        request = dataset_service_pb2.UploadDatasetRequest(options=options, data=data)
        work = job_pb2.DatasetWork(dataset_id=dataset.UploadDataset(iter([request]), timeout=30).dataset.dataset_id)
        wanted = job_pb2.JobSpec(endpoint="local", model=MODEL, dataset=work, provider_batch=True, **spec)
        asked = scheduler_service_pb2.CreateJobRequest(spec=wanted, request_id=str(uuid.uuid4()))
        return self.stack.scheduler.CreateJob(asked, timeout=10).job.job_id

    def step(self, job_id: str) -> str:
        return self.stack.job(job_id).progress.current_step


@pytest.fixture(scope="module")
def module_world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("batches")
    crashes = folder / "crashes"
    crashes.mkdir()
    environment = {
        "TOUCHSTONE_BATCH_POLL_S": "0.1",
        "TOUCHSTONE_BATCH_MOST_POLL_S": "0.3",
        "TOUCHSTONE_BATCH_SETTLE_S": "3",
        "TOUCHSTONE_ACK_WAIT_S": "2",
        "TOUCHSTONE_CRASH_AT": str(crashes),
        "PYTHONPATH": str(PATCH),
    }
    with stub_thread() as stubs:
        stub = stubs.start(OpenAIBatchServer(Behaviour(models=(MODEL,), answer=lambda prompt: prompt.split()[-1])))
        local: Endpoint = {"name": "local", "kind": "openai", "base_url": stub.url, "concurrency": 8}
        with running(Stack(folder, [local], environment=environment), request) as stack:
            stack.know_models("local")
            yield World(stack, stub, crashes)


@pytest.fixture
def world(module_world: World) -> World:
    stub = module_world.stub
    stub.held, stub.ends, stub.answered, stub.takes_s = False, "completed", 0, 0.0
    return module_world


def assert_every_row_once(world: World, job_id: str) -> None:
    items = world.stack.items(job_id)
    assert [one.result.custom_id for one in items] == [f"own-{i}" for i in range(ROWS)]
    assert [one.result.response for one in items] == [str(i) for i in range(ROWS)]
    (batch,) = world.batches()
    assert batch["status"] == "completed"
    assert batch["request_counts"]["total"] == ROWS


@pytest.mark.parametrize("point", ["", "begun", "waiting", "publishing"])
def test_every_row_is_answered_once_by_one_batch(world: World, point: str) -> None:
    if point:
        (world.crashes / point).touch()
    job_id = world.begin()
    job = world.stack.wait(job_id)
    assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
    assert not list(world.crashes.iterdir()), "the evaluator was killed"
    assert (job.progress.items_done, job.progress.items_failed) == (ROWS, 0)
    assert_every_row_once(world, job_id)


def test_the_step_tells_how_far_the_provider_is_and_cancelling_cancels_there(world: World) -> None:
    world.stub.held, world.stub.takes_s = True, 2.0
    job_id = world.begin()
    until(lambda: "Waiting for local's batch: 4" in world.step(job_id))
    request = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
    world.stack.scheduler.CancelJob(request, timeout=10)
    until(lambda: [batch["status"] for batch in world.batches()] == ["cancelled"])
    assert world.stack.wait(job_id).state == job_pb2.Job.STATE_CANCELLED


def test_an_expired_batch_keeps_its_answers_and_a_retry_asks_the_rest(world: World) -> None:
    world.stub.ends, world.stub.answered = "expired", 300
    job_id = world.begin()
    job = world.stack.wait(job_id)
    assert job.state == job_pb2.Job.STATE_FAILED
    assert "a retry runs the missing ones" in job.reason
    assert job.progress.items_failed == ROWS - 300
    world.stub.ends = "completed"
    world.stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=job_id), timeout=10)
    job = world.stack.wait(job_id)
    assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
    assert [batch["request_counts"]["total"] for batch in world.batches()] == [ROWS, ROWS - 300]
    items = world.stack.items(job_id)
    assert [one.result.response for one in items] == [str(i) for i in range(ROWS)]


def test_the_run_is_asked_for_over_rest(world: World) -> None:
    world.before = len(world.stub.batches)
    with world.stack.client() as client:
        root = world.stack.url
        files = {"file": ("few.jsonl", b'{"messages":[{"role":"user","content":"Say 1"}]}\n')}
        uploaded = client.post(f"{root}/admin/datasets/upload", files=files)
        body = {"model_id": MODEL, "dataset_id": uploaded.json()["dataset_id"], "provider_batch": True}
        started = client.post(f"{root}/admin/benchmarks/run", json=body)
        assert started.status_code == 200, started.text
    until(lambda: [batch["status"] for batch in world.batches()] == ["completed"])
    assert not world.stub.records
