"""gRPC reflection as v1 and as v1alpha.

Clients use either. The package grpcio-reflection serves v1alpha alone; the messages of v1 are the same. Deprecated
methods still answer, but are not described.
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

_V1 = "grpc.reflection.v1.ServerReflection"
NAMES = (_V1, reflection.SERVICE_NAME)


def add(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Describes the services of these full names, and reflection itself."""
    described = descriptor_pool.DescriptorPool()
    known = descriptor_pool.Default()
    for name in (*names, reflection.SERVICE_NAME):
        _describe(known.FindFileContainingSymbol(name), described)
    described.Add(_v1_file())
    servicer = reflection.aio.ReflectionServicer([*names, *NAMES], described)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_V1, {"ServerReflectionInfo": handler}),))


def _describe(file: descriptor.FileDescriptor, described: descriptor_pool.DescriptorPool) -> None:
    """Adds the file, after those that it imports."""
    for imported in file.dependencies:
        _describe(imported, described)
    copied = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(copied)
    for service in copied.service:
        offered = [method for method in service.method if not method.options.deprecated]
        del service.method[:]
        service.method.extend(offered)
    described.Add(copied)


def _v1_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    text = text_format.MessageToString(file).replace("reflection.v1alpha", "reflection.v1")
    described = text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
    described.name = "grpc/reflection/v1/reflection.proto"
    return described
