"""Whom a server takes callers for, and messages that it refuses before a method sees them."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from tests.gateway import fake_services
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_service_pb2_grpc, scheduler_service_pb2_grpc, token_pb2

SCHEDULER, DATASETS = "touchstone.v1.SchedulerService", "touchstone.v1.DatasetService"
JUNK = [b"\xff" * 50, b"\x0a\xff\xff\xff\x07x", b"\x0a\x02\xff\xfe"]


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    address, world = f"127.0.0.1:{free_port()}", World()
    served: list[tuple[Any, Any, str]] = [
        (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, fake_services.Scheduler(world), SCHEDULER),
        (dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server, fake_services.Datasets(world), DATASETS),
    ]
    authenticate = rpc.Authenticator(None, "")
    async with rpc.serve(address, authenticate, served, grace_s=0.1), grpc.aio.insecure_channel(address) as opened:
        yield opened


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_junk_is_refused_by_every_kind_of_call(
    channel: Any, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def junks() -> AsyncIterator[bytes]:
        yield junk

    calls: list[Any] = [
        channel.unary_unary(f"/{SCHEDULER}/GetJob")(junk, timeout=30),
        channel.unary_stream(f"/{SCHEDULER}/WatchJob")(junk, timeout=30),
        channel.stream_unary(f"/{DATASETS}/UploadDataset")(junks(), timeout=30),
    ]
    with caplog.at_level(logging.WARNING):
        codes = [await call.code() for call in calls]
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT] * 3
    assert not caplog.records


async def test_a_message_above_four_mebibytes_is_refused(channel: Any) -> None:
    # A field that no message has is read over.
    padding = b"\xfa\xff\x7f\x80\x80\x80\x02" + bytes(4 * 2**20)
    call = channel.unary_unary(f"/{SCHEDULER}/GetQueue")(padding, timeout=30)
    assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


TOKENS = {
    rpc.token_digest("of-ann"): token_pb2.Token(user="ann", role=token_pb2.ROLE_USER),
    rpc.token_digest("of-root"): token_pb2.Token(user="root", role=token_pb2.ROLE_ADMIN),
    rpc.token_digest("of-yesterday"): token_pb2.Token(user="ann", role=token_pb2.ROLE_USER),
}
TOKENS[rpc.token_digest("of-yesterday")].expires_at.FromSeconds(int(time.time()) - 1)


@pytest.fixture
async def guarded() -> AsyncIterator[grpc.aio.Channel]:
    """A service whose one method tells the caller's user and role."""

    async def who(request: bytes, context: Any) -> bytes:
        return f"{rpc.identity().user} {token_pb2.Role.Name(rpc.identity().role)}".encode()

    def register(servicer: Any, server: Any) -> None:
        handler: Any = grpc.unary_unary_rpc_method_handler(who)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SCHEDULER, {"Who": handler}),))

    async def lookup(digest: str) -> token_pb2.Token | None:
        return TOKENS.get(digest)

    address = f"127.0.0.1:{free_port()}"
    authenticate = rpc.Authenticator(lookup, "of-services")
    served: list[tuple[Any, Any, str]] = [(register, None, SCHEDULER)]
    async with rpc.serve(address, authenticate, served, grace_s=0.1), grpc.aio.insecure_channel(address) as opened:
        yield opened


@pytest.mark.parametrize(
    ("token", "for_user", "taken_for"),
    [
        ("of-ann", "", "ann ROLE_USER"),
        ("of-ann", "root", "ann ROLE_USER"),
        ("of-root", "ann", "root ROLE_ADMIN"),
        ("of-services", "ann", "ann ROLE_USER"),
        ("of-yesterday", "", "UNAUTHENTICATED"),
        ("made-up", "", "UNAUTHENTICATED"),
        ("", "root", "UNAUTHENTICATED"),
    ],
)
async def test_only_services_speak_for_users(guarded: Any, token: str, for_user: str, taken_for: str) -> None:
    metadata = [("authorization", f"Bearer {token}")] if token else []
    if for_user:
        metadata += [("touchstone-user", for_user), ("touchstone-role", "admin" if for_user == "root" else "user")]
    try:
        told = (await guarded.unary_unary(f"/{SCHEDULER}/Who")(b"", metadata=metadata, timeout=30)).decode()
    except grpc.aio.AioRpcError as error:
        told = error.code().name
    assert told == taken_for
