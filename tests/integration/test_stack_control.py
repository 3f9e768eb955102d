"""Time and change, through every process: more evaluators, cancel, retry, limits, restarts, what is missing."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from deploy.local.ports import free_port
from services.evaluator.catalogue import Catalogue
from tests.oracle import answers, right
from tests.rows import write_mirror
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, Record, by_mapping
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import endpoint_pb2, item_result_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

ITEMS = {"sst2": 2000, "rte": 960}
CALLS = 16
"""At once, of each evaluator."""
LATENCY_S = 0.05
FOREVER_S = 3600.0
FLUSH_S = 0.25
"""Answers travel in packs that are at most so old."""
SLACK_S = 1.0
"""For a busy machine."""


@dataclass
class World:
    """`one` is an endpoint of the first evaluator alone, `both` of two; `down` a job on one where nothing listens."""

    stack: Stack
    stub: OpenAIServer
    down: str

    def seconds(self, endpoint: str, items: int) -> float:
        """How long so many items take there, by the job's own times."""
        job = self.stack.wait(self.stack.run(endpoint, "stub", "glue", tasks=["sst2"], limit=items))
        assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
        assert job.progress.items_done == items
        mean = items / job.progress.elapsed_s
        assert job.progress.items_per_second == pytest.approx(mean), "a finished job shows its whole run's mean"
        return (job.finished_at.ToNanoseconds() - job.started_at.ToNanoseconds()) / 1e9


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("control")
    data_dir = write_mirror(folder / "data", ITEMS)
    answer = by_mapping(answers(Catalogue(data_dir), "glue", list(ITEMS), right))
    with stub_thread() as stubs:
        stub = stubs.start(OpenAIServer(Behaviour(answer, latency_s=LATENCY_S)))
        both: Endpoint = {"name": "both", "kind": "openai", "base_url": stub.url, "concurrency": CALLS}
        nobody = f"http://127.0.0.1:{free_port()}/v1"
        endpoints: list[Endpoint] = [
            both,
            {**both, "name": "one"},
            {"name": "nobody", "kind": "openai", "base_url": nobody},
        ]
        stack = Stack(folder, [*endpoints], data_dir)
        with running(stack, request), stack.evaluator("evaluator-2", [both]):
            yield World(stack, stub, stack.run("nobody", "stub", "glue", tasks=["rte"]))


@pytest.mark.stack
def test_two_evaluators_take_about_half_the_time_of_one(world: World) -> None:
    """Interleaved, and the best of each: what else the machine does can only add time. The calls last so long that
    they, and not the machine, are what a job takes."""
    latency_s, items = 0.4, 1000
    world.stub.behaviour.latency_s = latency_s
    rounds: list[tuple[float, float]] = []
    one = both = 1.0
    while both / one > 0.6 and len(rounds) < 3:
        rounds.append((world.seconds("one", items), world.seconds("both", items)))
        one, both = (min(times) for times in zip(*rounds, strict=True))
    assert one >= items / CALLS * latency_s, "more calls at once than the endpoint allows"
    assert 0.45 <= both / one <= 0.6, f"one: {one:.2f} s, two: {both:.2f} s; rounds {rounds}"
    assert world.stub.most_in_flight == 2 * CALLS


def test_cancel_at_half_ends_all_calls_and_retry_runs_only_the_rest(world: World) -> None:
    items, stub, answer = 160, world.stub, world.stub.behaviour.answer
    stub.behaviour.latency_s = 0.01
    first, aborted = len(stub.records), stub.aborted
    hanging: list[int] = []

    def half_of_them(prompt: str) -> str | Fault:
        """From the middle on, calls last until they are given up."""
        if not hanging and len(stub.records) - first >= items / 2:
            stub.behaviour.latency_s = FOREVER_S
            hanging.append(len(stub.records))
        return answer(prompt)

    stub.behaviour.answer = half_of_them
    job_id = world.stack.run("one", "stub", "glue", tasks=["rte"], limit=items)
    until(lambda: hanging and len(stub.records) == hanging[0] + CALLS)
    stored = hanging[0] - first
    until(lambda: len(world.stack.items(job_id)) == stored)
    asked = _records(world, first)
    with world.stack.client() as client:
        answered = client.post(f"/cancel/{job_id}")
    assert answered.status_code == 200, answered.text
    assert world.stack.wait(job_id).state == job_pb2.Job.STATE_CANCELLED
    until(lambda: stub.in_flight == 0)
    assert stub.aborted == aborted + CALLS, "calls in flight are given up"
    body = world.stack.get(f"/results/{job_id}")
    assert body["status"] == "cancelled"
    assert len(world.stack.items(job_id)) == stored
    assert body["performance_data"] == {}, "half a task has no score"

    stub.behaviour.latency_s, stub.behaviour.answer = 0.01, answer
    assert _records(world, first) == asked, "no call began after the cancel"
    retried = world.stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=job_id)).job
    assert (retried.job_id, retried.attempt) == (job_id, 2)
    body = world.stack.completed(job_id)
    assert (body["attempt"], body["performance_data"]["glue"]["rte"]["accuracy"]["mean"]) == (2, 1.0)
    assert len(world.stack.items(job_id)) == items
    calls = Counter(str(record.body["messages"]) for record in _records(world, first))
    given_up = {str(record.body["messages"]) for record in asked[stored:]}
    assert len(calls) == items
    assert {prompt for prompt, times in calls.items() if times > 1} == given_up
    assert calls.total() == items + CALLS


def test_a_job_over_its_time_limit_fails_with_that_reason_and_frees_its_slot(world: World) -> None:
    world.stub.behaviour.latency_s = 0.5
    spec = job_pb2.JobSpec(endpoint="one", model="stub", time_limit_s=1)
    spec.suite.CopyFrom(job_pb2.SuiteWork(suite="glue", tasks=["rte"]))
    made = world.stack.scheduler.CreateJob(scheduler_service_pb2.CreateJobRequest(spec=spec)).job
    job = world.stack.wait(made.job_id)
    assert job.state == job_pb2.Job.STATE_FAILED
    assert job.reason.startswith("Job execution failed: Resource limits exceeded. Stopped after 1 second with ")
    assert job.progress.items_done < ITEMS["rte"]
    until(lambda: world.stub.in_flight == 0)
    queue = world.stack.scheduler.GetQueue(scheduler_service_pb2.GetQueueRequest()).queue
    assert made.job_id not in {job.job_id for job in queue.running}
    world.stub.behaviour.latency_s = 0.0


def test_services_describe_themselves_and_say_that_they_serve(world: World) -> None:
    for port, name in (
        (world.stack.scheduler_port, "touchstone.v1.SchedulerService"),
        (world.stack.results_port, "touchstone.v1.ResultsService"),
    ):
        channel = world.stack.channel(port)
        reflection = ProtoReflectionDescriptorDatabase(channel)
        listed = set(reflection.get_services())
        assert {name, "grpc.health.v1.Health"} <= listed
        file = reflection.FindFileContainingSymbol(name)
        assert any(service.name == name.rpartition(".")[2] for service in file.service)
        for service in ("", name):
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_watching_a_job_ends_with_its_finished_state(world: World) -> None:
    job_id = world.stack.run("one", "stub", "glue", tasks=["rte"], limit=50)
    request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
    seen = [response.job for response in world.stack.scheduler.WatchJob(request, timeout=30)]
    assert seen[-1].state == job_pb2.Job.STATE_COMPLETED
    assert seen[-1].progress.items_done == seen[-1].progress.items_total == 50
    done = [job.progress.items_done for job in seen]
    assert done == sorted(done)


def test_an_unknown_job_is_not_found_over_grpc(world: World) -> None:
    for call in (
        lambda: world.stack.scheduler.GetJob(scheduler_service_pb2.GetJobRequest(job_id=str(uuid.uuid4()))),
        lambda: world.stack.results.GetJob(results_service_pb2.ResultsServiceGetJobRequest(job_id=str(uuid.uuid4()))),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            call()
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_repeated_request_id_makes_one_job(world: World) -> None:
    ids = {world.stack.run("one", "stub", "glue", tasks=["rte"], limit=5, request_id="once-1") for _ in range(3)}
    assert len(ids) == 1
    world.stack.completed(ids.pop())


def test_a_limit_takes_a_nested_sample_labelled_as_a_subset(world: World) -> None:
    samples = []
    for limit in (100, 200):
        body = world.stack.completed(world.stack.run("one", "stub", "glue", tasks=["sst2"], limit=limit))
        assert body["subset"] is True
        assert body["performance_data"]["glue"]["sst2"]["accuracy"]["n"] == limit
        samples.append({stored.result.item for stored in world.stack.items(body["job_id"], page_size=37)})
    assert samples[0] < samples[1]
    assert samples[0] != set(range(100)), "the first rows are biased"


def test_a_missing_data_set_fails_the_job_with_its_name(world: World) -> None:
    job = world.stack.wait(world.stack.run("one", "stub", "glue"))
    assert job.state == job_pb2.Job.STATE_FAILED
    assert job.reason.startswith("Failed to load GLUE dataset: ")
    assert "nyu-mll/glue (cola, validation)" in job.reason


@pytest.mark.stack
def test_a_job_on_a_provider_that_is_down_fails_within_a_minute_and_is_never_scored(world: World) -> None:
    job = world.stack.wait(world.down, 60)
    assert job.state == job_pb2.Job.STATE_FAILED
    assert job.finished_at.ToSeconds() - job.created_at.ToSeconds() <= 60
    assert "nobody does not answer" in job.reason
    body = world.stack.get(f"/results/{world.down}")
    assert (body["status"], body["performance_data"], body["error"]) == ("failed", {}, job.reason)
    assert "score" not in body
    assert not [i for i in world.stack.items(world.down) if i.result.outcome == item_result_pb2.OUTCOME_ANSWERED]
    board = world.stack.get("/leaderboard", suite="glue", limit=100)
    assert "nobody" not in {row["provider"] for row in board["leaderboard"]}
    listed = world.stack.scheduler.ListEndpoints(scheduler_service_pb2.ListEndpointsRequest()).endpoints
    (nobody,) = (endpoint for endpoint in listed if endpoint.endpoint == "nobody")
    assert nobody.state == endpoint_pb2.Endpoint.STATE_DOWN


@pytest.mark.stack
def test_results_are_the_same_after_a_restart_and_a_running_job_goes_on(world: World) -> None:
    stack = world.stack
    job_ids = [row["job_id"] for row in stack.get("/results", limit=1000)["results"]]
    assert len(job_ids) >= 3
    until(lambda: all(map(stack.settled, job_ids)))
    paths = [f"/results/{job_id}" for job_id in job_ids] + ["/results", "/leaderboard", "/leaderboard?metric=score"]
    before = {path: stack.get(path) for path in paths}
    stored = {job_id: len(stack.items(job_id)) for job_id in job_ids}
    audit = stack.results.ListEvents(results_service_pb2.ListEventsRequest(page_size=1000)).events
    latency_s = 0.2
    world.stub.behaviour.latency_s = latency_s
    first = len(world.stub.records)
    unfinished = stack.run("one", "stub", "glue", tasks=["rte"])
    until(lambda: len(world.stub.records) - first >= 400)

    stopped_at = time.monotonic()
    stack.stop()
    asked = len(world.stub.records)
    time.sleep(1)
    assert len(world.stub.records) == asked, "a stopped installation asks nobody"
    stack.start()

    for path in paths[:-3]:
        assert stack.get(path) == before[path]
    assert {job_id: len(stack.items(job_id)) for job_id in job_ids} == stored
    after = stack.results.ListEvents(results_service_pb2.ListEventsRequest(page_size=1000)).events
    assert list(after[: len(audit)]) == list(audit)
    body = stack.completed(unfinished)
    assert body["performance_data"]["glue"]["rte"]["accuracy"]["n"] == ITEMS["rte"]
    keys = Counter(stored.result.item for stored in stack.items(unfinished))
    assert (len(keys), keys.total()) == (ITEMS["rte"], ITEMS["rte"])
    assert_repeated_only(_records(world, first), ITEMS["rte"], stopped_at, latency_s)


def assert_repeated_only(records: Sequence[Record], items: int, stopped_at: float, latency_s: float) -> None:
    """Every item was asked; a second time only where its first answer could not be published before the stop."""
    calls: dict[str, list[float]] = {}
    for record in records:
        calls.setdefault(str(record.body["messages"]), []).append(record.at)
    assert len(calls) == items
    repeated = [times for times in calls.values() if len(times) > 1]
    earliest = stopped_at - latency_s - FLUSH_S - SLACK_S
    assert all(len(times) == 2 and times[0] >= earliest for times in repeated), "an item was repeated needlessly"


def _records(world: World, first: int) -> list[Record]:
    return world.stub.records[first:]
