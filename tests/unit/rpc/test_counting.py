"""Calls are counted by method and status; unknown methods, health and reflection are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import BusyError, NotFoundError
from services.telemetry.metrics import RPC_REQUESTS, RPC_SECONDS, SCHEDULER
from services.telemetry.serving import Metrics
from tests.waiting import until
from touchstone.v1 import job_pb2, scheduler_service_pb2, scheduler_service_pb2_grpc

NAME = "touchstone.v1.SchedulerService"


class Servicer(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    async def GetJob(self, request: Any, context: Any) -> scheduler_service_pb2.GetJobResponse:  # noqa: N802
        errors = {"absent": NotFoundError("absent"), "busy": BusyError("busy", 1), "bug": RuntimeError("bug")}
        if request.job_id in errors:
            raise errors[request.job_id]
        return scheduler_service_pb2.GetJobResponse(job=job_pb2.Job(job_id=request.job_id))

    async def WatchJob(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        yield scheduler_service_pb2.WatchJobResponse()
        if request.job_id:
            await asyncio.Event().wait()
        yield scheduler_service_pb2.WatchJobResponse()


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    for metric in (RPC_REQUESTS, RPC_SECONDS):
        metric.switch(True)
    address = f"127.0.0.1:{free_port()}"
    servicer: Any = Servicer
    service = (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, servicer(), NAME)
    authenticate = rpc.Authenticator(None, "")
    async with (
        rpc.serve(address, authenticate, [service], grace_s=0.1) as server,
        grpc.aio.insecure_channel(address) as opened,
    ):
        await server.set_ready(True)
        yield opened
    for metric in (RPC_REQUESTS, RPC_SECONDS):
        metric.switch(False)


def counted(name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "le"): sample.value
        for family in Metrics(SCHEDULER).registry.collect()
        for sample in family.samples
        if sample.name == name
    }


async def test_calls_are_counted_by_method_and_status(channel: grpc.aio.Channel) -> None:
    opened: Any = channel
    stub: Any = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
    for job_id in ("a", "b", "absent", "busy", "bug"):
        with suppress(grpc.RpcError):
            await stub.GetJob(scheduler_service_pb2.GetJobRequest(job_id=job_id), timeout=30)
    assert [_ async for _ in stub.WatchJob(scheduler_service_pb2.WatchJobRequest(), timeout=30)]
    watch = stub.WatchJob(scheduler_service_pb2.WatchJobRequest(job_id="forever"), timeout=30)
    await watch.read()
    watch.cancel()
    for path in (f"/{NAME}/Nothing", "/nothing.Service/Nothing", "/grpc.health.v1.Health/Check"):
        with suppress(grpc.RpcError):
            await opened.unary_unary(path)(b"", timeout=30)
    wanted: dict[tuple[str, ...], float] = {
        ("OK", "SchedulerService/GetJob"): 2,
        ("NOT_FOUND", "SchedulerService/GetJob"): 1,
        ("UNAVAILABLE", "SchedulerService/GetJob"): 1,
        ("INTERNAL", "SchedulerService/GetJob"): 1,
        ("OK", "SchedulerService/WatchJob"): 1,
        ("CANCELLED", "SchedulerService/WatchJob"): 1,
    }
    await until(lambda: counted("touchstone_rpc_requests_total") == wanted)
    assert counted("touchstone_rpc_duration_seconds_count") == {
        ("SchedulerService/GetJob",): 5,
        ("SchedulerService/WatchJob",): 2,
    }
