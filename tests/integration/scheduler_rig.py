"""Schedulers in this loop against a real NATS server, with stand-ins for evaluators and the results service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import grpc
import nats.errors
import nats.js.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from deploy.local.ports import free_port
from services import bus, rpc
from services.scheduler.server import serve
from services.scheduler.settings import Limits, Settings, WebhookSettings
from tests.nats_server import NatsServer
from tests.unit.scheduler.fakes import evaluator, plan, spec
from touchstone.v1 import (
    digest_pb2,
    item_result_pb2,
    job_pb2,
    results_internal_service_pb2,
    results_internal_service_pb2_grpc,
    results_service_pb2,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
    unit_pb2,
)

T = TypeVar("T")

LIMIT = bus.Settings(url="", monitor_url="", results_max_bytes=64 * 1024**2, replicas=1)


class Sealer(results_internal_service_pb2_grpc.ResultsInternalServiceServicer):
    """Results that seals every job, and has stored nothing of it."""

    async def SealJob(self, request, context):  # type: ignore[no-untyped-def]
        return results_service_pb2.SealJobResponse()

    async def ListStoredItems(self, request, context):  # type: ignore[no-untyped-def]
        return results_service_pb2.ListStoredItemsResponse()

    async def FindResponses(self, request, context):  # type: ignore[no-untyped-def]
        return results_service_pb2.FindResponsesResponse()

    async def ReadDigest(self, request, context):  # type: ignore[no-untyped-def]
        digest = digest_pb2.Digest(begin_at=request.digest.begin_at, end_at=request.digest.end_at)
        digest.series.add(model="m", suite="demo", runs=1)
        return results_internal_service_pb2.ReadDigestResponse(digest=digest)


class Harness:
    """A NATS server, a results stand-in, and schedulers started and killed by the test."""

    def __init__(self, nats: NatsServer) -> None:
        self.nats = nats
        self.results_port = free_port()
        self.port = free_port()
        self.connection: bus.Bus
        self.limits = Limits()
        self.webhooks = WebhookSettings(loopback=True)
        self.messages: dict[int, Msg] = {}
        self.work: JetStreamContext.PullSubscription | None = None

    def settings(self, name: str, port: int) -> Settings:
        return Settings(
            name=name,
            listen=f"127.0.0.1:{port}",
            results=f"127.0.0.1:{self.results_port}",
            bus=bus.Settings(self.nats.url, self.nats.monitor_url, LIMIT.results_max_bytes, 1),
            rpc=rpc.Settings("local", ""),
            limits=self.limits,
            webhooks=self.webhooks,
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

    async def units(self, at_least: int = 1) -> list[unit_pb2.Unit]:
        """Takes every unit on WORK, as an evaluator would, once so many have come; `finish` acknowledges."""
        taken: list[unit_pb2.Unit] = []
        async with asyncio.timeout(60):
            while len(taken) < at_least:
                # NATS may be away in between.
                with suppress(nats.errors.Error, nats.js.errors.Error):
                    self.work = self.work or await self.subscribe("stub")
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
        (msg,) = await sub.fetch(1, timeout=60)
        await self.connection.publish_plan(job_id, attempt, plan())
        await msg.ack_sync()

    async def report(self, unit: unit_pb2.Unit, *, done: bool = True) -> None:
        results = [item_result_pb2.ItemResult(item=i) for i in range(unit.start, unit.stop)]
        batch = item_result_pb2.ItemResultBatch(
            job_id=unit.job_id, attempt=unit.attempt, unit=unit.unit, task=unit.task, items=results
        )
        await self.connection.publish_items(batch, delivery=1, done=done)

    async def wait(self, job_id: str, state: job_pb2.Job.State, within: float = 60) -> job_pb2.Job:
        stub = self.stub()
        async with asyncio.timeout(within):
            while True:
                try:
                    request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
                    job = (await stub.GetJob(request, timeout=15)).job
                    if job.state == state:
                        return job
                except grpc.aio.AioRpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                await asyncio.sleep(0.05)

    async def create_jobs(self, request: scheduler_service_pb2.CreateJobsRequest) -> list[job_pb2.Job]:
        """Asks until the scheduler has read its jobs back."""
        async with asyncio.timeout(60):
            while True:
                try:
                    return list((await self.stub().CreateJobs(request, timeout=15)).jobs)
                except grpc.aio.AioRpcError as error:
                    if error.code() != grpc.StatusCode.UNAVAILABLE:
                        raise
                await asyncio.sleep(0.05)

    async def create(self, request_id: str = "", webhook_url: str = "") -> job_pb2.Job:
        wanted = spec()
        wanted.webhook_url = webhook_url
        request = scheduler_service_pb2.CreateJobRequest(request_id=request_id, spec=wanted)
        return (await self.stub().CreateJob(request, timeout=15)).job


@asynccontextmanager
async def running(nats: NatsServer, *, announced: bool = True) -> AsyncIterator[Harness]:
    """A harness with an evaluator announced, unless real ones will be, and a results service that has everything."""
    made = Harness(nats)
    made.connection = await bus.connect(nats.url, "test")
    await made.connection.ensure(LIMIT.results_max_bytes)
    announcer = asyncio.create_task(made.announce() if announced else asyncio.sleep(0))
    await asyncio.sleep(0.1)
    register = results_internal_service_pb2_grpc.add_ResultsInternalServiceServicer_to_server
    sealer: Any = Sealer  # The generated base wants every method.
    service = (register, sealer(), "touchstone.v1.ResultsInternalService")
    async with rpc.serve(f"127.0.0.1:{made.results_port}", rpc.Authenticator(None, ""), internal=[service], grace_s=0):
        yield made
    announcer.cancel()
    await made.connection.close()
