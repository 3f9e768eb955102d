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
from services.rpc import server
from tests.gateway import fake_services
from tests.gateway.fake_world import World
from touchstone.v1 import (
    results_internal_service_pb2_grpc,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2_grpc,
)

SCHEDULER = "touchstone.v1.SchedulerService"
RESULTS = "touchstone.v1.ResultsService"
INTERNAL = "touchstone.v1.ResultsInternalService"


async def ask(service: str, *requests: ServerReflectionRequest) -> list[ServerReflectionResponse]:
    address, world = f"127.0.0.1:{free_port()}", World()
    served: list[tuple[Any, Any, str]] = [
        (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, fake_services.Scheduler(world), SCHEDULER),
        (results_service_pb2_grpc.add_ResultsServiceServicer_to_server, fake_services.Results(world), RESULTS),
    ]
    base: Any = results_internal_service_pb2_grpc.ResultsInternalServiceServicer
    internal = (results_internal_service_pb2_grpc.add_ResultsInternalServiceServicer_to_server, base(), INTERNAL)
    authenticate = rpc.Authenticator(None, "")

    async def asked() -> AsyncIterator[ServerReflectionRequest]:
        for request in requests:
            yield request

    serving = rpc.serve(address, authenticate, served, internal=[internal], grace_s=0.1)
    async with serving, grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.stream_stream(
            f"/{service}/ServerReflectionInfo",
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )
        return [answer async for answer in call(asked(), timeout=30)]


@pytest.mark.parametrize("service", server.REFLECTIONS)
async def test_both_versions_list_and_describe_every_service(service: str) -> None:
    (listed,) = await ask(service, ServerReflectionRequest(list_services=""))
    names = [one.name for one in listed.list_services_response.service]
    assert sorted(names) == sorted([SCHEDULER, RESULTS, "grpc.health.v1.Health", *server.REFLECTIONS])

    described = await ask(service, *(ServerReflectionRequest(file_containing_symbol=name) for name in names))
    for name, answer in zip(names, described, strict=True):
        files = [FileDescriptorProto.FromString(file) for file in answer.file_descriptor_response.file_descriptor_proto]
        assert name in {f"{file.package}.{one.name}" for file in files for one in file.service}


async def test_what_only_services_call_is_not_described() -> None:
    """The released calls that are now deprecated still answer; tests/integration/test_results_service.py calls them."""
    results = results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"]
    deprecated = {method.name for method in results.methods if method.GetOptions().deprecated}
    assert deprecated == {"SealJob", "ListStoredItems", "FindResponses", "GetImport"}

    asked = (results.full_name, INTERNAL, f"{results.full_name}.SealJob")
    requests = (ServerReflectionRequest(file_containing_symbol=name) for name in asked)
    listed, described, *unknown = await ask(server.REFLECTIONS[0], ServerReflectionRequest(list_services=""), *requests)
    assert INTERNAL not in {one.name for one in listed.list_services_response.service}
    files = [FileDescriptorProto.FromString(file) for file in described.file_descriptor_response.file_descriptor_proto]
    (service,) = (one for file in files for one in file.service)
    assert {method.name for method in service.method} == {method.name for method in results.methods} - deprecated
    assert [answer.error_response.error_code for answer in unknown] == [grpc.StatusCode.NOT_FOUND.value[0]] * 2
