"""The scheduler process's own wiring against a real NATS server: leadership, fencing, recovery."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import nats.errors
import nats.js.errors
import pytest
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from deploy.local.ports import free_port
from services import bus, rpc
from services.scheduler.lease import Lease
from services.scheduler.nats_work import WorkStream
from services.scheduler.ports import LeadershipLostError
from services.scheduler.server import serve
from services.scheduler.settings import Limits, Settings
from tests.nats_server import NatsServer
from tests.unit.scheduler.fakes import evaluator, plan, spec
from touchstone.v1 import (
    item_result_pb2,
    job_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
    unit_pb2,
)

LIMIT = bus.Settings(url="", monitor_url="", results_max_bytes=64 * 1024**2, replicas=1)


class Sealer(results_service_pb2_grpc.ResultsServiceServicer):
    """Results that has everything."""

    async def SealJob(self, request, context):  # type: ignore[no-untyped-def]
        return results_service_pb2.SealJobResponse()


class Harness:
    """A NATS server, a results stand-in, and schedulers started and killed by the test."""

    def __init__(self, nats: NatsServer) -> None:
        self.nats = nats
        self.results_port = free_port()
        self.port = free_port()
        self.connection: bus.Bus
        self.messages: dict[int, Msg] = {}
        self.work: JetStreamContext.PullSubscription | None = None

    def settings(self, name: str, port: int) -> Settings:
        return Settings(
            name=name,
            listen=f"127.0.0.1:{port}",
            results=f"127.0.0.1:{self.results_port}",
            bus=bus.Settings(self.nats.url, self.nats.monitor_url, LIMIT.results_max_bytes, 1),
            rpc=rpc.Settings("local", ""),
            limits=Limits(),
        )

    async def announce(self) -> None:
        while True:
            with suppress(nats.errors.Error, nats.js.errors.Error):
                await self.connection.announce(evaluator(concurrency=30))
            await asyncio.sleep(1)

    @asynccontextmanager
    async def scheduler(self, name: str = "s1", port: int | None = None, *, crash: bool = False) -> AsyncIterator[None]:
        """Runs a scheduler in this loop; `crash` ends it without a goodbye."""
        stop = asyncio.Event()
        task = asyncio.create_task(serve(self.settings(name, port or self.port), stop))
        try:
            yield
        finally:
            if crash:
                task.cancel()
            stop.set()
            await asyncio.wait({task}, timeout=20)
            assert task.done()
            if not task.cancelled() and (error := task.exception()):
                raise error

    def stub(self, port: int | None = None) -> scheduler_service_pb2_grpc.SchedulerServiceAsyncStub:
        return scheduler_service_pb2_grpc.SchedulerServiceStub(rpc.channel(f"127.0.0.1:{port or self.port}"))

    async def subscribe(self, endpoint: str) -> JetStreamContext.PullSubscription:
        name = await self.connection.work_consumer(endpoint, 60)
        return await self.connection.js.pull_subscribe_bind(name, stream=bus.WORK)

    async def units(self) -> list[unit_pb2.Unit]:
        """Takes every unit on WORK, as an evaluator would; `finish` acknowledges."""
        self.work = self.work or await self.subscribe("stub")
        taken: list[unit_pb2.Unit] = []
        # NATS may be away in between.
        with suppress(TimeoutError, nats.errors.Error, nats.js.errors.Error):
            while True:
                (message,) = await self.work.fetch(1, timeout=0.4)
                unit = unit_pb2.Unit.FromString(message.data)
                self.messages[unit.unit] = message
                taken.append(unit)
        return taken

    async def finish(self, unit: unit_pb2.Unit) -> None:
        await self.report(unit)
        await self.messages.pop(unit.unit).ack_sync()

    async def answer_plan(self, job_id: str, attempt: int = 1) -> None:
        sub = await self.subscribe(bus.PLAN_ENDPOINT)
        (msg,) = await sub.fetch(1, timeout=10)
        await self.connection.publish_plan(job_id, attempt, plan())
        await msg.ack_sync()

    async def report(self, unit: unit_pb2.Unit, *, done: bool = True) -> None:
        results = [item_result_pb2.ItemResult(item=i) for i in range(unit.start, unit.stop)]
        batch = item_result_pb2.ItemResultBatch(
            job_id=unit.job_id, attempt=unit.attempt, unit=unit.unit, task=unit.task, items=results
        )
        await self.connection.publish_items(batch, delivery=1, done=done)

    async def wait(self, job_id: str, state: job_pb2.Job.State, within: float = 10) -> job_pb2.Job:
        stub = self.stub()
        async with asyncio.timeout(within):
            while True:
                try:
                    request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
                    job = (await stub.GetJob(request, timeout=5)).job
                    if job.state == state:
                        return job
                except grpc.aio.AioRpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                await asyncio.sleep(0.05)

    async def create(self, request_id: str = "") -> job_pb2.Job:
        request = scheduler_service_pb2.CreateJobRequest(request_id=request_id, spec=spec())
        return (await self.stub().CreateJob(request, timeout=15)).job


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    made = Harness(nats)
    made.connection = await bus.connect(nats.url, "test")
    await made.connection.ensure(LIMIT.results_max_bytes)
    announcer = asyncio.create_task(made.announce())
    await asyncio.sleep(0.1)
    register = results_service_pb2_grpc.add_ResultsServiceServicer_to_server
    sealer: Any = Sealer  # The generated base wants every method.
    service = (register, sealer(), "touchstone.v1.ResultsService")
    async with rpc.serve(f"127.0.0.1:{made.results_port}", rpc.Authenticator(None, ""), [service], grace_s=0):
        yield made
    announcer.cancel()
    await made.connection.close()


async def test_a_job_runs_over_real_streams(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create("r1")
        assert (await harness.create("r1")).job_id == job.job_id
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        done = 0
        while units := await harness.units():
            for unit in units:
                await harness.finish(unit)
                done += 1
        assert done == 20
        finished = await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED)
        assert finished.progress.items_done == 200
        audit = (await harness.connection.js.stream_info(bus.AUDIT)).state.messages
        assert audit == 5


async def test_a_crash_in_the_middle_repeats_no_done_unit_and_loses_none(harness: Harness) -> None:
    async with harness.scheduler(crash=True):
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        first = await harness.units()
        await harness.finish(first[0])
    # While nobody leads, a unit ends and another reports without ending.
    await harness.finish(first[1])
    await harness.report(first[2], done=False)
    async with harness.scheduler():
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        done = [first[0].unit, first[1].unit]
        left = first[2:]
        while left:
            for unit in left:
                await harness.finish(unit)
                done.append(unit.unit)
            left = await harness.units()
        assert sorted(done) == list(range(20))
        await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED)


async def test_a_plan_answered_while_nobody_led_is_found(harness: Harness) -> None:
    async with harness.scheduler(crash=True):
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
    await harness.answer_plan(job.job_id)
    async with harness.scheduler():
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)


async def test_a_second_scheduler_stands_by_and_takes_over_after_a_goodbye(harness: Harness) -> None:
    other = free_port()
    async with harness.scheduler("s1"):
        job = await harness.create()
        async with harness.scheduler("s2", other):
            request = scheduler_service_pb2.GetJobRequest(job_id=job.job_id)
            with pytest.raises(grpc.aio.AioRpcError, match="standby"):
                await harness.stub(other).GetJob(request, timeout=5)
    harness.port = other
    async with harness.scheduler("s2", other):
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)


async def test_a_stale_leader_can_write_nothing(harness: Harness) -> None:
    async with harness.scheduler("s1"):
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
        await asyncio.sleep(0.2)
        before = (await harness.connection.js.stream_info(bus.AUDIT)).state.messages
        # Another leadership begins while the first still believes in its own.
        await harness.connection.kv_put(bus.JOBS, bus.EPOCH_KEY, b"s2")
        await harness.connection.kv_put(bus.LEASE, "leader", b"s2", ttl_s=60)
        with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
            await harness.stub().CreateJob(scheduler_service_pb2.CreateJobRequest(spec=spec()), timeout=5)
        stored = [key async for key, _ in harness.connection.kv_all(bus.JOBS, "job.*")]
        assert len(stored) == 1
        assert (await harness.connection.js.stream_info(bus.AUDIT)).state.messages == before


async def test_a_leader_whose_lease_ran_out_releases_no_unit(harness: Harness) -> None:
    lease = Lease(harness.connection, "s1")
    work = WorkStream(harness.connection, lease)
    unit = unit_pb2.Unit(job_id="j", attempt=1, unit=0)
    with pytest.raises(LeadershipLostError):
        await work.release("stub", 2, unit)
    assert await work.released() == set()
    await lease.acquire()
    assert await work.release("stub", 2, unit)
    assert await work.released() == {("j", 0)}


async def test_nats_killed_and_restarted_ends_no_job(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        harness.nats.kill()
        await asyncio.sleep(0.5)
        harness.nats.restart()
        done: list[int] = []
        async with asyncio.timeout(40):
            while len(done) < 20:
                for unit in await harness.units():
                    await harness.finish(unit)
                    done.append(unit.unit)
        assert sorted(done) == list(range(20))
        await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED, within=20)
