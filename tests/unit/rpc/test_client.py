"""A stream of requests that the server refuses before it has read all: the caller learns why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from services.errors import BadLinesError, LineReason
from touchstone.v1 import dataset_service_pb2 as pb
from touchstone.v1 import dataset_service_pb2_grpc

NAME = "touchstone.v1.DatasetService"
PIECE = b"x" * 256 * 1024


async def refusing(requests: AsyncIterator[pb.UploadDatasetRequest], context: Any) -> pb.UploadDatasetResponse:
    """Refuses with the third message."""
    read = 0
    async for _ in requests:
        read += 1
        if read == 3:
            reasons = [(number, "größer als erlaubt " * 15) for number in range(1, 300)]
            groups = [LineReason(f"{number} größer als erlaubt " * 9, 2, [1, 2]) for number in range(100)]
            raise BadLinesError("299 lines are wrong.", reasons, 299, groups)
    return pb.UploadDatasetResponse()


def register(behaviour: Any, server: Any) -> None:
    codec = (pb.UploadDatasetRequest.FromString, pb.UploadDatasetResponse.SerializeToString)
    handlers = {"UploadDataset": grpc.stream_unary_rpc_method_handler(behaviour, *codec)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))


@asynccontextmanager
async def serving() -> AsyncIterator[dataset_service_pb2_grpc.DatasetServiceAsyncStub]:
    address = f"127.0.0.1:{free_port()}"
    services = [(register, refusing, NAME)]
    async with rpc.serve(address, rpc.Authenticator(None, ""), services, grace_s=0), rpc.channel(address) as channel:
        yield dataset_service_pb2_grpc.DatasetServiceStub(channel)


async def pieces(count: int, taken: list[int]) -> AsyncIterator[pb.UploadDatasetRequest]:
    for number in range(count):
        taken.append(number)
        yield pb.UploadDatasetRequest(data=PIECE)


async def test_a_refusal_in_the_middle_is_told_with_its_lines_and_ends_the_writing() -> None:
    async with serving() as stub:
        for _ in range(20):
            taken: list[int] = []
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await rpc.send(stub.UploadDataset(timeout=20), pieces(1000, taken))
            found = rpc.from_rpc_error(refused.value)
            assert isinstance(found, BadLinesError), found
            assert (found.message, found.total, found.lines[0][0]) == ("299 lines are wrong.", 299, 1)
            assert 5 < len(found.lines) < 100, "as many as a header of 8 KB holds"
            assert 5 < len(found.reasons) < 100
            assert found.reasons[0] == LineReason("0 größer als erlaubt " * 9, 2, [1, 2])
            assert found.other_lines == 299 - 2 * len(found.reasons)
            assert len(taken) < 1000
        await rpc.send(stub.UploadDataset(timeout=20), pieces(2, []))


async def test_what_the_writer_raises_cancels_the_call_and_passes_on() -> None:
    async def broken() -> AsyncIterator[pb.UploadDatasetRequest]:
        yield pb.UploadDatasetRequest(data=PIECE)
        raise ConnectionError("the sender is gone")

    async with serving() as stub:
        call = stub.UploadDataset(timeout=20)
        with pytest.raises(ConnectionError, match="the sender is gone"):
            await rpc.send(call, broken())
        assert call.cancelled()


async def test_clients_that_still_write_when_the_refusal_comes_learn_why() -> None:
    """Of a client that knows nothing of `rpc.send`; about 3 % of these calls failed as INTERNAL."""

    async def slowly(pause_s: float) -> AsyncIterator[pb.UploadDatasetRequest]:
        for number in range(6):
            yield pb.UploadDatasetRequest(data=b"x")
            await asyncio.sleep(pause_s if number == 2 else 0)

    async with serving() as stub:
        for number in range(400):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.UploadDataset(slowly(number % 100 * 2e-5), timeout=20)
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, refused.value.details()


async def test_a_stream_of_requests_goes_to_an_address_that_answers() -> None:
    address = f"127.0.0.1:{free_port()}"
    services = [(register, refusing, NAME)]
    async with (
        rpc.serve(address, rpc.Authenticator(None, ""), services, grace_s=0),
        rpc.channel(f"127.0.0.1:{free_port()},{address}") as channel,
    ):
        assert isinstance(channel, rpc.Balanced)
        await channel.find()
        await rpc.send(dataset_service_pb2_grpc.DatasetServiceStub(channel).UploadDataset(timeout=20), pieces(2, []))
