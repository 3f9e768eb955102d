"""Reflection answers clients of v1 and of v1alpha alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from deploy.local.ports import free_port
from services import rpc
from services.rpc import reflection
from tests.gateway import fake_services
from tests.gateway.fake_world import World
from touchstone.v1 import scheduler_service_pb2_grpc

SCHEDULER = "touchstone.v1.SchedulerService"


async def ask(service: str, *requests: ServerReflectionRequest) -> list[ServerReflectionResponse]:
    address, world = f"127.0.0.1:{free_port()}", World()
    served: list[tuple[Any, Any, str]] = [
        (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, fake_services.Scheduler(world), SCHEDULER),
    ]
    authenticate = rpc.Authenticator(None, "")

    async def asked() -> AsyncIterator[ServerReflectionRequest]:
        for request in requests:
            yield request

    async with rpc.serve(address, authenticate, served, grace_s=0.1), grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )
        return [answer async for answer in call(asked(), timeout=30)]


@pytest.mark.parametrize("service", reflection.NAMES)
async def test_both_versions_list_and_describe_every_service(service: str) -> None:
    (listed,) = await ask(service, ServerReflectionRequest(list_services=""))
    names = [one.name for one in listed.list_services_response.service]
    assert sorted(names) == sorted([SCHEDULER, "grpc.health.v1.Health", *reflection.NAMES])

    described = await ask(service, *(ServerReflectionRequest(file_containing_symbol=name) for name in names))
    for name, answer in zip(names, described, strict=True):
        files = [FileDescriptorProto.FromString(file) for file in answer.file_descriptor_response.file_descriptor_proto]
        assert name in {f"{file.package}.{one.name}" for file in files for one in file.service}
