"""What is no message of a method is the caller's mistake: INVALID_ARGUMENT, and nothing in the log."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from deploy.local.ports import free_port
from services import rpc
from tests.gateway import fake_services
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_service_pb2_grpc, scheduler_service_pb2_grpc

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
