"""A call whose work is given up by the service itself: its caller learns so at once, and not at its deadline."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from touchstone.v1 import scheduler_service_pb2 as pb
from touchstone.v1 import scheduler_service_pb2_grpc

NAME = "touchstone.v1.SchedulerService"


async def given_up(request: pb.CancelJobRequest, context: Any) -> pb.CancelJobResponse:
    """Waits for a change that ends with the leadership."""
    change = asyncio.create_task(asyncio.sleep(60))
    asyncio.get_running_loop().call_later(0.05, change.cancel)
    await asyncio.shield(change)
    return pb.CancelJobResponse()


def register(behaviour: Any, server: Any) -> None:
    codec = (pb.CancelJobRequest.FromString, pb.CancelJobResponse.SerializeToString)
    handlers = {"CancelJob": grpc.unary_unary_rpc_method_handler(behaviour, *codec)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))


async def test_a_call_whose_work_is_given_up_is_unavailable() -> None:
    address = f"127.0.0.1:{free_port()}"
    services = [(register, given_up, NAME)]
    async with (
        rpc.serve(address, rpc.Authenticator(None, ""), services, grace_s=0),
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = scheduler_service_pb2_grpc.SchedulerServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.CancelJob(pb.CancelJobRequest(job_id="1"), timeout=20)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE, refused.value.details()
