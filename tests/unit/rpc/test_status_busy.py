"""A busy service tells its clients when to return, and they do; a gateway passes it on instead."""

from __future__ import annotations

import time
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import BusyError, UnavailableError
from tests.gateway import fake_services
from tests.gateway.fake_world import World
from touchstone.v1 import scheduler_service_pb2, scheduler_service_pb2_grpc
from touchstone_client import AsyncClient, Settings


class Scheduler(fake_services.Scheduler):
    """Busy for the first `times` questions."""

    def __init__(self, times: int) -> None:
        super().__init__(World())
        self.times = times
        self.asked: list[float] = []

    async def GetQueue(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        self.asked.append(time.monotonic())
        if len(self.asked) <= self.times:
            raise BusyError("Too many wait. Try again in 1 s.", 1)
        return scheduler_service_pb2.GetQueueResponse()


async def test_the_client_returns_after_the_wait_and_the_gateway_at_once() -> None:
    busy, address = Scheduler(1), f"127.0.0.1:{free_port()}"
    register = scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server
    served = [(register, busy, "touchstone.v1.SchedulerService")]
    async with rpc.serve(address, rpc.Authenticator(None, "secret"), served) as server:
        await server.set_ready(True)
        async with AsyncClient(Settings(scheduler=address, results=address, timeout_s=30)) as client:
            await client.queue()
        first, second = busy.asked
        assert second - first >= 0.9, "it came back before it was told to"

        busy.asked.clear()
        channel = rpc.channel(address)
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        caller = rpc.metadata("secret", rpc.LOCAL)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.GetQueue(scheduler_service_pb2.GetQueueRequest(), timeout=30, metadata=caller)
        await channel.close()
    assert len(busy.asked) == 1
    told = rpc.from_rpc_error(refused.value)
    assert isinstance(told, UnavailableError)
    assert (told.message, told.retry_after_s) == ("Too many wait. Try again in 1 s.", 1)
