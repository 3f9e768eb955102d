"""A disk without room, through a real server and channel; wrong fields."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import InvalidFieldsError, NoRoomError, TouchstoneError, UnavailableError
from touchstone.v1 import scheduler_service_pb2 as pb
from touchstone.v1 import scheduler_service_pb2_grpc


class FullDisk(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    calls = 0

    async def GetQueue(self, request: pb.GetQueueRequest, context: Any) -> pb.GetQueueResponse:  # noqa: N802
        self.calls += 1
        raise NoRoomError("The disk is full.", 30)


async def test_the_error_arrives_as_it_was_and_no_channel_repeats_the_call() -> None:
    address, servicer = f"127.0.0.1:{free_port()}", FullDisk()  # type: ignore[abstract]
    service = (
        scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server,
        servicer,
        "touchstone.v1.SchedulerService",
    )
    async with (
        rpc.serve(address, rpc.Authenticator(None, ""), [service], grace_s=0),
        rpc.channel(address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await scheduler_service_pb2_grpc.SchedulerServiceStub(channel).GetQueue(pb.GetQueueRequest(), timeout=10)
    found = rpc.from_rpc_error(refused.value)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    assert isinstance(found, NoRoomError)
    assert (found.message, found.retry_after_s) == ("The disk is full.", 30)
    assert servicer.calls == 1


def received(told: TouchstoneError) -> TouchstoneError:
    """The error as a caller has it."""
    status = rpc.to_status(told)
    trailing = grpc.aio.Metadata(*status.trailing_metadata)
    return rpc.from_rpc_error(grpc.aio.AioRpcError(status.code, grpc.aio.Metadata(), trailing, status.details))


def test_other_unavailable_services_are_not_taken_for_a_full_disk() -> None:
    assert type(received(UnavailableError("NATS does not answer."))) is UnavailableError


def test_each_wrong_field_arrives_as_far_as_a_header_has_room() -> None:
    problems = [("name", "name is required."), ("models[0]", "There is no such model.")]
    found = received(InvalidFieldsError("Two fields are wrong.", problems))
    assert isinstance(found, InvalidFieldsError)
    assert (found.message, found.field, found.problems) == ("Two fields are wrong.", "name", problems)
    many = received(InvalidFieldsError("All are wrong.", [(f"models[{n}]", "x" * 100) for n in range(1000)]))
    assert isinstance(many, InvalidFieldsError)
    assert 20 < len(many.problems) < 50
