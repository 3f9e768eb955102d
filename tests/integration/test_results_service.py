"""The results service as a process between a real NATS and a real DuckDB file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import grpc
import pytest

from deploy.local.ports import free_port
from services import bus, rpc
from services.experiments import reading
from tests.nats_server import NatsServer
from tests.unit.results.builders import ANSWERED, ERROR, answer, batch, event, job, plan
from tests.waiting import answered
from touchstone.v1 import (
    endpoint_pb2,
    evaluator_pb2,
    job_pb2,
    results_internal_service_pb2,
    results_internal_service_pb2_grpc,
    results_service_pb2_grpc,
    token_pb2,
    unit_pb2,
)
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion

if TYPE_CHECKING:
    from touchstone.v1.results_service_pb2_grpc import ResultsServiceAsyncStub as Stub

pytestmark = pytest.mark.stack

STREAM_BYTES = 64 * 1024 * 1024
MAIN = ("-m", "services.results")
ACKNOWLEDGE_FIRST = ("-m", "tests.integration.acknowledge_first")


class Service:
    """A results process that may be killed and started again on the same file and port."""

    def __init__(self, state: Path, nats: NatsServer) -> None:
        self.database = state / "results" / "touchstone.duckdb"
        self.address = f"127.0.0.1:{free_port()}"
        self.log = state / "results.log"
        self.environment = os.environ | {
            "TOUCHSTONE_STATE_DIR": str(state),
            "TOUCHSTONE_RESULTS_LISTEN": self.address,
            "TOUCHSTONE_NATS_URL": nats.url,
            "TOUCHSTONE_NATS_MONITOR_URL": nats.monitor_url,
            "TOUCHSTONE_AUTH": "local",
        }
        state.mkdir(exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, command: tuple[str, ...] = MAIN) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command], env=self.environment, stdout=output, stderr=output
            )

    async def answers(self) -> None:
        """Returns when the service accepts calls."""
        async with rpc.channel(self.address) as channel:
            await asyncio.wait_for(channel.channel_ready(), 90)

    def end(self, number: signal.Signals = signal.SIGKILL, timeout_s: float = 60) -> int:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture
def service(tmp_path: Path, nats: NatsServer) -> Iterator[Service]:
    made = Service(tmp_path / "state", nats)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()


@pytest.fixture
async def connection(nats: NatsServer) -> AsyncIterator[bus.Bus]:
    opened = await bus.connect(nats.url, "test")
    await opened.ensure(STREAM_BYTES)
    yield opened
    await opened.close()


@pytest.fixture
async def stub(service: Service) -> AsyncIterator[Stub]:
    async with rpc.channel(service.address) as channel:
        yield results_service_pb2_grpc.ResultsServiceStub(channel)


async def publish(
    connection: bus.Bus, job_id: str, units: range, unit_size: int = 10, copies: int = 1, pause_s: float = 0
) -> int:
    """Publishes units of right answers; returns the last position. Survives a NATS that is away."""
    position = 0
    for unit in units:
        start = unit * unit_size
        results = [answer(i) for i in range(start, start + unit_size)]
        for _ in range(copies):
            sent = batch(job_id, "t", results, unit=unit)
            while True:
                try:
                    position = await connection.publish_items(sent, delivery=1, done=True)
                    break
                except Exception:
                    await asyncio.sleep(0.1)
        await asyncio.sleep(pause_s)
    return position


async def publish_event(connection: bus.Bus, event: job_pb2.JobEvent) -> None:
    await connection.js.publish(bus.audit_subject(event.job.job_id), event.SerializeToString())


async def seal(stub: Stub, job: job_pb2.Job, position: int, timeout_s: float = 90) -> pb.SealJobResponse:
    return await stub.SealJob(pb.SealJobRequest(job=job, results_sequence=position), timeout=timeout_s)


async def told(stub: Stub, job_id: str, count: int) -> Sequence[job_pb2.JobEvent]:
    """The job's events, once there are so many: they are read beside the results."""
    async with asyncio.timeout(60):
        while True:
            events = (await stub.ListEvents(pb.ListEventsRequest(job_id=job_id))).events
            if len(events) >= count:
                return events
            await asyncio.sleep(0.02)


async def test_a_job_goes_from_streams_to_a_leaderboard(service: Service, connection: bus.Bus, stub: Stub) -> None:
    service.start()
    running = job("j", plan("t", 50))
    await publish_event(connection, event("0001", running))
    await connection.publish_plan("j", 1, unit_pb2.Plan(tasks=[plan("t", 50)]))
    position = await publish(connection, "j", range(5), copies=2)
    response = await seal(stub, running, position)
    assert (response.missing, response.infrastructure_errors) == (0, 0)
    board = await stub.GetLeaderboard(pb.GetLeaderboardRequest(suite="glue", metric="score"))
    assert [(e.rank, e.job_id, e.score.mean) for e in board.entries] == [(1, "j", 1.0)], "before the last event"
    done = job("j", plan("t", 50), state=job_pb2.Job.STATE_COMPLETED)
    await publish_event(connection, event("0002", done, "completed"))
    events = await told(stub, "j", 2)
    assert (await stub.GetJob(pb.ResultsServiceGetJobRequest(job_id="j"))).job == done
    assert [e.action for e in events] == ["running", "completed"]
    assert service.end(signal.SIGTERM) == 0
    assert service.rows("SELECT count(*), count(DISTINCT item) FROM items") == [(50, 50)]


async def test_a_job_is_readable_as_soon_as_the_scheduler_has_it(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    made = job(str(uuid.uuid4()), plan("t", 50))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.ListItems(pb.ListItemsRequest(job_id=made.job_id), timeout=90)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    await connection.kv_put(bus.JOBS, bus.job_key(made.job_id), made.SerializeToString())
    asked = asyncio.gather(
        stub.ListItems(pb.ListItemsRequest(job_id=made.job_id), timeout=90),
        stub.GetJob(pb.ResultsServiceGetJobRequest(job_id=made.job_id), timeout=90),
    )
    await asyncio.sleep(0.3)
    await publish_event(connection, event("0001", made, "created"))
    items, stored = await asked
    assert (list(items.items), stored.job) == ([], made)


async def test_a_seal_waits_until_its_position_is_stored(service: Service, connection: bus.Bus, stub: Stub) -> None:
    service.start()
    position = await publish(connection, "j", range(2))
    waiting = asyncio.create_task(seal(stub, job("j", plan("t", 30)), position + 1))
    await asyncio.sleep(1)
    assert not waiting.done()
    await publish(connection, "j", range(2, 3))
    # A seal whose position does not come is refused.
    assert (await waiting).missing == 0


async def test_a_seal_whose_position_does_not_come_is_unavailable_within_its_deadline(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await publish(connection, "j", range(1))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await seal(stub, job("j", plan("t", 10)), 99, timeout_s=3)
    assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def crash_loop(
    service: Service, connection: bus.Bus, command: tuple[str, ...], kills: int, least_s: float = 0.0
) -> int:
    """Publishes 10-item units, some twice, while the service is killed at random moments, `least_s` or more after it
    serves. Returns the item count."""
    rng = random.Random(11)
    published = 0
    stopped = asyncio.Event()

    async def publisher() -> None:
        nonlocal published
        while not stopped.is_set():
            await publish(connection, "j", range(published, published + 1), copies=rng.choice((1, 1, 2)))
            published += 1
            await asyncio.sleep(0.002)

    task = asyncio.create_task(publisher())
    for _ in range(kills):
        service.start(command)
        await service.answers()
        await asyncio.sleep(least_s + rng.uniform(0, 0.5))
        service.end(signal.SIGKILL)
    stopped.set()
    await task
    return published * 10


async def drained(service: Service, stub: Stub, position: int, items: int) -> None:
    service.start()
    for _ in range(10):
        try:
            await seal(stub, job("j", plan("t", items)), position)
            break
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.2)
    assert service.end(signal.SIGTERM) == 0


@pytest.mark.chaos
async def test_random_kills_of_the_service_lose_and_double_nothing(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    items = await crash_loop(service, connection, MAIN, kills=8)
    await drained(service, stub, (await connection.js.stream_info(bus.RESULTS)).state.last_seq, items)
    assert items > 1000
    assert service.rows("SELECT count(*), count(DISTINCT item), max(item) FROM items") == [(items, items, items - 1)]


@pytest.mark.chaos
async def test_a_service_that_acknowledges_before_it_stores_fails_the_same_test(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    """The control: it shows that the kills of the test above hit where they hurt. Before its first read a service has
    nothing to lose, and a busy machine gives it that late."""
    items = await crash_loop(service, connection, ACKNOWLEDGE_FIRST, kills=5, least_s=0.5)
    position = (await connection.js.stream_info(bus.RESULTS)).state.last_seq
    await drained(service, stub, position, items)
    ((stored,),) = service.rows("SELECT count(*) FROM items")
    assert isinstance(stored, int)
    assert stored < items


@pytest.mark.chaos
async def test_nats_may_be_killed_and_restarted_while_results_come_in(
    service: Service, connection: bus.Bus, stub: Stub, nats: NatsServer
) -> None:
    service.start()
    await service.answers()
    publisher = asyncio.create_task(publish(connection, "j", range(300), pause_s=0.01))
    for _ in range(3):
        await asyncio.sleep(0.5)
        await asyncio.to_thread(nats.kill)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(nats.restart)
    position = await publisher
    began = time.monotonic()
    response = await seal(stub, job("j", plan("t", 3000)), position)
    assert response.missing == 0
    assert time.monotonic() - began < 30
    assert service.end(signal.SIGTERM) == 0
    assert service.rows("SELECT count(*) FROM items") == [(3000,)]


async def test_a_stream_that_starts_anew_is_read_from_its_beginning(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await seal(stub, job("a", plan("t", 50)), await publish(connection, "a", range(5)))
    assert service.end(signal.SIGTERM) == 0
    await connection.js.delete_stream(bus.RESULTS)
    await connection.ensure(STREAM_BYTES)
    service.start()
    response = await seal(stub, job("b", plan("t", 20)), await publish(connection, "b", range(2)))
    assert response.missing == 0


async def test_a_lost_database_is_filled_again_from_what_the_stream_still_holds(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    position = await publish(connection, "j", range(5))
    await seal(stub, job("j", plan("t", 50)), position)
    assert service.end(signal.SIGTERM) == 0
    service.database.unlink()
    service.start()
    assert (await seal(stub, job("j", plan("t", 50)), position)).missing == 0


async def test_a_half_full_stream_is_purged_up_to_the_lower_of_both_floors(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()

    async def fill(unit: int) -> int:
        long = [answer(i, reasoning="x" * 120_000) for i in range(unit * 8, unit * 8 + 8)]
        return await connection.publish_items(batch("j", "t", long, unit=unit), delivery=1, done=True)

    for unit in range(40):  # 38 of 64 MB
        position = await fill(unit)
    await seal(stub, job("j", plan("t", 320)), position)
    await asyncio.sleep(1.5)
    assert (await connection.js.stream_info(bus.RESULTS)).state.first_seq == 1, "the scheduler has set no floor"
    await connection.kv_put(bus.JOBS, bus.FLOOR_KEY, b"12")
    info = await answered(lambda: connection.js.stream_info(bus.RESULTS), lambda found: found.state.first_seq > 1)
    assert info.state.first_seq == 13
    await connection.kv_put(bus.JOBS, bus.FLOOR_KEY, b"9999")
    for unit in range(40, 100):
        while True:
            try:
                position = await fill(unit)
                break
            except bus.StreamFullError:
                await asyncio.sleep(0.2)
    assert (await seal(stub, job("j", plan("t", 800)), position)).missing == 0


async def test_a_full_disk_ends_the_service_with_a_sentence_and_nothing_is_lost(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    assert service.process is not None
    # Not by `preexec_fn`: that forks beside gRPC's threads, and such a child may abort.
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
    rng = random.Random(1)
    position = 0
    for unit in range(20):
        results = [answer(i, reasoning=rng.randbytes(20_000).hex()) for i in range(unit * 8, unit * 8 + 8)]
        position = await connection.publish_items(batch("j", "t", results, unit=unit), delivery=1, done=True)
    status = await asyncio.to_thread(service.process.wait, 90)
    assert status == 1, service.log.read_text()[-4000:]
    assert "Free some disk space" in service.log.read_text()
    service.start()
    assert (await seal(stub, job("j", plan("t", 160)), position)).missing == 0


async def test_a_second_service_on_the_same_file_is_refused_with_a_sentence(
    service: Service, connection: bus.Bus, stub: Stub, tmp_path: Path, nats: NatsServer
) -> None:
    service.start()
    position = await publish(connection, "j", range(1))
    await seal(stub, job("j", plan("t", 10)), position)
    second = Service(tmp_path / "state", nats)
    second.log = tmp_path / "second.log"
    second.start()
    assert second.process is not None
    assert await asyncio.to_thread(second.process.wait, 90) == 1
    assert "no other results service" in second.log.read_text()


async def test_sealing_stored_items_stored_answers_and_experiments_need_an_admin(
    service: Service, connection: bus.Bus
) -> None:
    service.environment |= {"TOUCHSTONE_AUTH": "token", "TOUCHSTONE_SERVICE_TOKEN": "s3cret"}
    service.start()
    user = rpc.metadata("s3cret", rpc.Identity("ann", 1))  # type: ignore[arg-type]
    async with rpc.channel(service.address) as channel:
        stub: Stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        # The services' own service, and the calls that were released among the public ones.
        for own in (results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel), stub):
            calls = (
                own.SealJob(pb.SealJobRequest(), metadata=user),
                own.ListStoredItems(pb.ListStoredItemsRequest(), metadata=user),
                own.FindResponses(pb.FindResponsesRequest(), metadata=user),
                own.GetImport(pb.GetImportRequest(), metadata=user),
            )
            for call in calls:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
            stored = await own.ListStoredItems(pb.ListStoredItemsRequest(job_id="x"), metadata=rpc.metadata("s3cret"))
            assert list(stored.tasks) == []
        preparing = results_internal_service_pb2.PrepareExperimentRequest(owner="ann", definition="{}")
        experiments = (
            results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel).PrepareExperiment(
                preparing, metadata=user
            ),
            stub.ListExperiments(pb.ListExperimentsRequest(), metadata=user),
            stub.GetExperiment(pb.GetExperimentRequest(name="tips"), metadata=user),
            stub.ListExperimentRuns(pb.ListExperimentRunsRequest(name="tips"), metadata=user),
        )
        for asked in experiments:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await asked
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        listed = await stub.ListExperiments(pb.ListExperimentsRequest(), metadata=rpc.metadata("s3cret"))
        assert list(listed.experiments) == []
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetJob(pb.ResultsServiceGetJobRequest(job_id="x"))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_whoever_may_see_the_jobs_of_an_experiment_rates_their_answers(
    service: Service, connection: bus.Bus
) -> None:
    """The team rates; what ranks is for admins."""
    service.environment |= {"TOUCHSTONE_AUTH": "token", "TOUCHSTONE_SERVICE_TOKEN": "s3cret"}
    service.start()
    made = job(str(uuid.uuid4()), plan("t", 10), state=job_pb2.Job.STATE_COMPLETED)
    made.owner, made.spec.experiment_name = "root", "tips"
    await publish_event(connection, event("0001", made, "completed"))
    ann = rpc.metadata("s3cret", rpc.Identity("ann", token_pb2.ROLE_USER))
    async with rpc.channel(service.address) as channel:
        stub: Stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        sealing = pb.SealJobRequest(job=made, results_sequence=await publish(connection, made.job_id, range(1)))
        await stub.SealJob(sealing, timeout=90, metadata=rpc.metadata("s3cret"))
        await answered(lambda: stub.ListEvents(pb.ListEventsRequest(), metadata=ann), lambda found: found.events)
        rubric = reading.shipped_rubric()
        left = await stub.ListUnrated(pb.ListUnratedRequest(job_id=made.job_id, rubric=rubric), metadata=ann)
        scores = '{"relevance": 4, "actionability": 3, "tone": 5}'
        said = [pb.Rating(task=one.task, item=one.item, scores=scores) for one in left.answers]
        rated = await stub.RateAnswers(
            pb.RateAnswersRequest(job_id=made.job_id, rubric=rubric, ratings=said), metadata=ann
        )
        assert (len(left.answers), rated.stored) == (10, 10)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetExperiment(pb.GetExperimentRequest(name="tips"), metadata=ann)
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_items_that_replace_errors_are_stored(service: Service, connection: bus.Bus, stub: Stub) -> None:
    service.start()
    for attempt, outcome in ((1, ERROR), (2, ANSWERED)):
        items = batch("j", "t", [answer(i, outcome=outcome) for i in range(9)], attempt)
        position = await connection.publish_items(items, delivery=1, done=True)
        left = await seal(stub, job("j", plan("t", 9), attempt=attempt), position)
        assert (left.missing, left.infrastructure_errors) == (0, 9 * (outcome == ERROR))


async def test_stored_answers_are_found_up_to_the_named_position(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    for place in range(5):
        items = batch("j", "t", [answer(place)])
        position = await connection.publish_items(items, delivery=1, done=False)
        request = pb.FindResponsesRequest(job_id="j", task="t", positions=range(5), results_sequence=position)
        found = await stub.FindResponses(request, timeout=90)
        assert [one.position for one in found.results] == list(range(place + 1))
    request.results_sequence = position + 1
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.FindResponses(request, timeout=2)
    # On a busy machine the caller's time may be over first.
    assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


async def test_a_message_that_is_no_batch_is_skipped(service: Service, connection: bus.Bus, stub: Stub) -> None:
    service.start()
    headers = bus.ResultHeaders(kind=bus.KIND_ITEMS, attempt=1).encode()
    await connection.js.publish(bus.results_subject("j", 0), b"\xff\xff\xff", headers=headers)
    position = await publish(connection, "j", range(1))
    assert (await seal(stub, job("j", plan("t", 10)), position)).missing == 0


async def test_reading_goes_on_after_the_consumer_was_deleted_under_the_service(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await seal(stub, job("a", plan("t", 20)), await publish(connection, "a", range(2)))
    await connection.js.delete_consumer(bus.RESULTS, "results-items")
    response = await seal(stub, job("b", plan("t", 20)), await publish(connection, "b", range(2)))
    assert response.missing == 0


async def test_marks_and_names_survive_a_kill(service: Service, connection: bus.Bus, stub: Stub) -> None:
    service.start()
    for number, job_id in enumerate(("old", "new")):
        done = job(job_id, plan("t", 10), state=job_pb2.Job.STATE_COMPLETED, minute=number)
        await publish_event(connection, event(f"000{number}", done, "completed"))
        await seal(stub, done, await publish(connection, job_id, range(1)))
    named = await stub.NameConfiguration(
        pb.NameConfigurationRequest(configuration="m1@local", name="first", alias="prod")
    )
    assert (named.configuration.job_id, named.configuration.run_count) == ("new", 2)
    marked = await stub.MarkRun(pb.MarkRunRequest(job_id="new", mark=pb.RUN_MARK_INVALIDATED, reason="a wrong prompt"))
    assert (marked.result.mark, marked.result.mark_reason) == ("invalidated", "a wrong prompt")
    service.end()
    service.start()
    await service.answers()
    entries = (await stub.GetLeaderboard(pb.GetLeaderboardRequest(suite="glue"), wait_for_ready=True)).entries
    told = [(e.rank, e.job_id, e.name, e.alias, e.run_count, e.mark) for e in entries]
    assert told == [(1, "old", "first", "prod", 1, ""), (0, "new", "first", "prod", 1, "invalidated")]
    kept = (await stub.GetJobResult(pb.GetJobResultRequest(job_id="new"))).result
    assert (kept.mark, kept.mark_reason, kept.suite_score.mean) == ("invalidated", "a wrong prompt", 1.0)
    assert (await stub.GetOverview(pb.GetOverviewRequest())).runs_with_metric == 1


async def test_rows_stand_side_by_side_and_a_run_is_estimated_by_its_endpoints_limit(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    for job_id in ("j", "k"):
        await publish_event(connection, event(f"0-{job_id}", job(job_id, plan("t", 10))))
        position = await publish(connection, job_id, range(1))
    for job_id in ("j", "k"):
        await told(stub, job_id, 1)
    await stub.ListStoredItems(pb.ListStoredItemsRequest(job_id="k", results_sequence=position), timeout=90)
    page = await stub.ListSideBySide(pb.ListSideBySideRequest(job_ids=["j", "k"], with_diffs=True))
    assert (len(page.rows), page.count_agree, [run.rows for run in page.runs]) == (10, 10, [10, 10])
    request = pb.EstimateRunRequest(job_id="j", items=120)
    assert (await stub.EstimateRun(request)).duration_s.value < 10
    limited = endpoint_pb2.Endpoint(endpoint="local", requests_per_minute=60)
    announced = evaluator_pb2.Evaluator(evaluator="e", endpoints=[limited])
    await connection.kv_put(bus.EVALUATORS, "e", announced.SerializeToString())
    found = await stub.EstimateRun(request)
    assert (found.duration_s.value, found.output_tokens.value, found.pilot_items) == (120, 360, 10)


async def test_closed_reads_hide_other_users_jobs_from_every_call(service: Service, connection: bus.Bus) -> None:
    service.environment |= {"TOUCHSTONE_AUTH": "token", "TOUCHSTONE_SERVICE_TOKEN": "s3cret", "TOUCHSTONE_READS": "own"}
    service.start()
    ann, bob = (rpc.metadata("s3cret", rpc.Identity(name, token_pb2.ROLE_USER)) for name in ("ann", "bob"))
    admin = rpc.metadata("s3cret", rpc.Identity("root", token_pb2.ROLE_ADMIN))
    made = job(str(uuid.uuid4()), plan("t", 10), state=job_pb2.Job.STATE_COMPLETED)
    made.finished_at.CopyFrom(made.created_at)
    await connection.kv_put(bus.JOBS, bus.job_key(made.job_id), made.SerializeToString())
    await publish_event(connection, event("0001", made, "completed"))
    async with rpc.channel(service.address) as channel:
        stub: Stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        sealing = pb.SealJobRequest(job=made, results_sequence=await publish(connection, made.job_id, range(1)))
        await stub.SealJob(sealing, timeout=90, metadata=rpc.metadata("s3cret"))
        await answered(lambda: stub.ListEvents(pb.ListEventsRequest(), metadata=admin), lambda found: found.events)
        closed = 0
        for method in pb.DESCRIPTOR.services_by_name["ResultsService"].methods:
            # Two are the services' own, and one is for admins.
            others = ("ListStoredItems", "FindResponses", "ListExperimentRuns")
            if "job_id" not in method.input_type.fields_by_name or method.name in others:
                continue
            call = getattr(stub, method.name)
            rubric = Rubric(version="v1", criteria=[RubricCriterion(name="tone", lowest=1, highest=5)])
            rating = pb.Rating(task="t", item=0, scores='{"tone": 3}')
            values = {
                "job_id": made.job_id,
                "task": "t",
                "mark": pb.RUN_MARK_VALID,
                "rubric": rubric,
                "ratings": [rating],
            }
            given = {name: value for name, value in values.items() if name in method.input_type.fields_by_name}
            request = getattr(pb, method.input_type.name)(**given)
            for caller in (ann, admin):
                if method.name == "GetReplay":
                    with pytest.raises(grpc.aio.AioRpcError, match="is not a replay"):
                        await call(request, metadata=caller)
                else:
                    await call(request, metadata=caller)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(request, metadata=bob)
            assert (caught.value.code(), caught.value.details()) == (
                grpc.StatusCode.NOT_FOUND,
                f"Benchmark job {made.job_id} not found",
            ), method.name
            closed += 1
        assert closed >= 6
        glue = pb.GetLeaderboardRequest(suite="glue")
        for caller in (ann, admin):
            assert len((await stub.GetLeaderboard(glue, metadata=caller)).entries) == 1
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetLeaderboard(glue, metadata=bob)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, "no run that bob sees names the suite"
        for caller, count in ((ann, 1), (admin, 1), (bob, 0)):
            jobs = await stub.ListJobs(pb.ResultsServiceListJobsRequest(), metadata=caller)
            figures = await stub.GetOverview(pb.GetOverviewRequest(), metadata=caller)
            named = await stub.ListConfigurations(pb.ListConfigurationsRequest(), metadata=caller)
            trends = await stub.ListTrends(pb.ListTrendsRequest(suite="glue", days=3650), metadata=caller)
            events = await stub.ListEvents(pb.ListEventsRequest(), metadata=caller)
            counted = (jobs.total_size, figures.total_jobs, len(named.configurations))
            assert (*counted, len(trends.trends), len(events.events)) == (count,) * 5
        internal = results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel)
        days = pb.GetDigestRequest()
        days.begin_at.FromSeconds(made.finished_at.seconds - 86_400)
        days.end_at.FromSeconds(made.finished_at.seconds + 86_400)
        for owner, count in ((made.owner, 1), ("bob", 0)):
            asked = results_internal_service_pb2.ReadDigestRequest(digest=days, owner=owner)
            with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED"):
                await internal.ReadDigest(asked, metadata=bob)
            found = await internal.ReadDigest(asked, metadata=rpc.metadata("s3cret"))
            assert len(found.digest.series) == count, owner


async def test_a_message_that_cannot_be_stored_is_set_aside_and_those_beside_it_are_stored(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    unfit = batch("j", "t", [answer(90)], unit=9)
    unfit.items[0].outcome = 300  # type: ignore[assignment]
    items = bus.ResultHeaders(bus.KIND_ITEMS, 1).encode()
    await publish(connection, "j", range(3))
    await connection.js.publish(bus.results_subject("j", 8), b"\xff\xff", headers=items)
    await connection.publish_items(unfit, delivery=1, done=True)
    position = await publish(connection, "j", range(3, 6))
    await connection.js.publish(bus.results_subject("j", 7), b"", headers={"Status": "503"})
    # Position 1 of the audit trail is no event, and its state is reached all the same.
    await connection.js.publish(bus.audit_subject("j"), b"\xff\xff")
    for _ in range(2):
        service.start()
        response = await seal(stub, job("j", plan("t", 60)), position)
        assert response.missing == 0
        assert service.end(signal.SIGTERM) == 0
    assert service.rows("SELECT count(*) FROM items") == [(60,)]
    kept = [message for _, message in await bus.list_set_aside(connection, 0, 10)]
    assert sorted((one.stream, one.sequence) for one in kept) == [(bus.AUDIT, 1), (bus.RESULTS, 4), (bus.RESULTS, 5)]
    assert "300" in next(one.reason for one in kept if one.sequence == 5)
