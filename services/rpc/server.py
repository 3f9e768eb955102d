"""A gRPC server with identity, error mapping, health and reflection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from functools import cache, partial
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, text_format
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from services import errors
from services.environment import is_loopback
from services.rpc.caller import Authenticator, Identity, use_identity, while_valid
from services.rpc.counting import CountingInterceptor
from services.rpc.status import code_of, to_status
from services.rpc.tls import PLAIN, Tls
from services.telemetry import metrics
from touchstone.v1 import token_pb2

log = logging.getLogger(__name__)

_ON_BEHALF_OF = "touchstone-user"
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_MOST_CALLS = 4000
"""Calls at a time; more are refused as RESOURCE_EXHAUSTED. Each may hold a message."""
_READ_ON_S = 1.0
_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"
"""The package grpcio-reflection serves v1alpha alone; the messages of v1 are the same, and clients use either."""
REFLECTIONS = (_REFLECTION_V1, reflection.SERVICE_NAME)
_PUBLIC_SERVICES = tuple(f"/{name}/" for name in (health.SERVICE_NAME, *REFLECTIONS))


def _add_reflection(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Describes the services of these full names, and reflection itself, as v1 and as v1alpha. Deprecated methods still
    answer, but are not described.
    """
    servicer = reflection.aio.ReflectionServicer([*names, *REFLECTIONS], _described(tuple(names)))
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_REFLECTION_V1, {"ServerReflectionInfo": handler}),)
    )


@cache
def _described(names: tuple[str, ...]) -> descriptor_pool.DescriptorPool:
    """What reflection says of the services of these names. A process that serves them again need not parse it again."""
    described = descriptor_pool.DescriptorPool()
    known = descriptor_pool.Default()
    for name in (*names, reflection.SERVICE_NAME):
        _describe(known.FindFileContainingSymbol(name), described)
    described.Add(_v1_file())
    return described


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


class IdentityInterceptor(grpc.aio.ServerInterceptor):
    """Sets the caller's identity and answers domain errors as statuses; unknown errors are logged once."""

    def __init__(self, authenticate: Authenticator) -> None:
        self._authenticate = authenticate

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_PUBLIC_SERVICES):
            return handler
        metadata = {k: v for k, v in handler_call_details.invocation_metadata or () if isinstance(v, str)}
        # Parsed here instead of by gRPC, which logs a traceback for an unreadable message and answers UNKNOWN.
        read = partial(_read, handler.request_deserializer)
        codec = (None, handler.response_serializer)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(handler.unary_stream, metadata, read), *codec)
        if handler.request_streaming:
            each = partial(_read_each, read)
            call = self._unary(handler.stream_unary, metadata, each, _take_the_rest)
            return grpc.stream_unary_rpc_method_handler(call, *codec)
        return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary, metadata, read), *codec)

    def _unary(
        self,
        behaviour: Any,
        metadata: dict[str, str],
        read: Callable[[Any], Any],
        refused: Callable[[Any], Awaitable[None]] | None = None,
    ) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                use_identity(await self._caller(metadata, context))
                async with self._valid(metadata):
                    return await behaviour(read(request), context)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                # The work that the call waited for was given up, for instance at the end of a leadership. Then gRPC
                # sends no status, and the client would wait for its deadline.
                await _abort(context, errors.UnavailableError("The service gave up on the call. Try again."), metadata)
            except Exception as error:
                if refused is not None:
                    await refused(request)
                await _abort(context, error, metadata)

        return call

    def _stream(self, behaviour: Any, metadata: dict[str, str], read: Callable[[Any], Any]) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                use_identity(await self._caller(metadata, context))
                async with self._valid(metadata), aclosing(behaviour(read(request), context)) as responses:
                    async for response in responses:
                        yield response
            except Exception as error:
                await _abort(context, error, metadata)

        return call

    def _valid(self, metadata: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        """Ends the call when its token is revoked."""
        return nullcontext() if self._authenticate.local else while_valid(lambda: self._authenticate(_token(metadata)))

    async def _caller(self, metadata: Mapping[str, str], context: Any) -> Identity:
        caller = await self._authenticate(_token(metadata), _address(context.peer()))
        if caller.role == token_pb2.ROLE_SERVICE and _ON_BEHALF_OF in metadata:
            role = token_pb2.ROLE_ADMIN if metadata.get("touchstone-role") == "admin" else token_pb2.ROLE_USER
            return Identity(metadata[_ON_BEHALF_OF], role)
        return caller


def _read(parse: Callable[[bytes], Any] | None, data: bytes) -> Any:
    try:
        return data if parse is None else parse(data)
    except DecodeError as error:
        raise errors.InvalidRequestError("The request does not match this method. See the protos.") from error


async def _read_each(read: Callable[[bytes], Any], requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    async for data in requests:
        yield read(data)


async def _take_the_rest(requests: AsyncIterator[bytes]) -> None:
    """Reads on for a moment before a refusal is sent. A Python client that is still writing when the refusal comes
    may show "Internal error from Core" in its place (3 % of the calls that were tried so)."""
    read = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_READ_ON_S):
            async for data in requests:
                read += len(data)
                if read > MAX_MESSAGE_BYTES:
                    return


def _token(metadata: Mapping[str, str]) -> str:
    scheme, _, bearer = metadata.get("authorization", "").partition(" ")
    return bearer if scheme.lower() == "bearer" else metadata.get("x-api-key", "")


def _address(peer: str) -> str:
    """The address in gRPC's name of a peer, such as ipv4:127.0.0.1:5000 or ipv6:%5B::1%5D:5000."""
    return unquote(peer.partition(":")[2]).rpartition(":")[0].strip("[]") or peer or "unknown"


async def _abort(context: Any, error: Exception, metadata: Mapping[str, str]) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, errors.TouchstoneError) and code_of(error) is not None:
        status = to_status(error)
        if isinstance(error, errors.BusyError):
            # gRPC's clients repeat UNAVAILABLE. Users' clients do so after the wait; the gateway passes the wait on to
            # its own clients and does not repeat.
            wait_ms = -1 if _ON_BEHALF_OF in metadata else 1000 * error.retry_after_s
            pushback = ("grpc-retry-pushback-ms", str(wait_ms))
            status = status._replace(trailing_metadata=(*status.trailing_metadata, pushback))
        await context.abort_with_status(status)
    log.exception("unexpected error in an RPC", exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, "Internal error. The service's log has the details.")


class Server:
    """A gRPC server with identity, health and reflection. Use `serve`."""

    def __init__(self, authenticate: Authenticator) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # A connection that sends nothing at first is closed, and later one that is silent for long.
            ("grpc.server_handshake_timeout_ms", 10_000),
            ("grpc.max_connection_idle_ms", 600_000),
            ("grpc.max_concurrent_streams", _MOST_CALLS),
            # A watch may be silent for long: its caller may ping more often than every five minutes.
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ]
        self._names: list[str] = []
        counting = [CountingInterceptor(self._names)] if metrics.RPC_REQUESTS.on else []
        interceptors = [*counting, IdentityInterceptor(authenticate)]
        self.grpc = grpc.aio.server(interceptors=interceptors, options=options, maximum_concurrent_rpcs=_MOST_CALLS)
        self._health = health.aio.HealthServicer()
        self._well, self._reaches_nats = False, True
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)

    def add(self, register: Callable[[Any, Any], None], servicer: Any, name: str) -> None:
        """Registers a servicer under its full service name."""
        register(servicer, self.grpc)
        self._names.append(name)

    async def set_ready(self, ready: bool, *, standby: bool = False) -> None:
        """The health of each service: whether it answers calls. A standby's do not, but it is as it should be."""
        self._well = ready or standby
        for name in self._names:
            await self._health.set(name, _health(ready))
        await self._health.set("", _health(self._well and self._reaches_nats))

    async def set_reaches_nats(self, reaches: bool) -> None:
        """Without NATS the process is not ready, while its services may still answer some calls."""
        self._reaches_nats = reaches
        await self._health.set("", _health(self._well and reaches))


def _health(well: bool) -> Any:
    return health_pb2.HealthCheckResponse.SERVING if well else health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def serve(
    address: str,
    authenticate: Authenticator,
    services: Sequence[tuple[Callable[[Any, Any], None], Any, str]] = (),
    *,
    internal: Sequence[tuple[Callable[[Any, Any], None], Any, str]] = (),
    tls: Tls = PLAIN,
    grace_s: float = 5,
) -> AsyncIterator[Server]:
    """Serves on `host:port` inside the context; health says NOT_SERVING until `set_ready(True)`.

    `internal` services are called by services alone: reflection leaves them out.
    With a certificate in `tls`, health and reflection also need TLS.
    """
    if authenticate.local and not is_loopback(address):
        raise errors.InvalidRequestError(
            f"Local mode needs no token, so it listens only on loopback, not on {address}. Set TOUCHSTONE_AUTH=token."
        )
    credentials = tls.server_credentials()
    server = Server(authenticate)
    for register, servicer, name in (*services, *internal):
        server.add(register, servicer, name)
    _add_reflection([*(name for *_, name in services), health.SERVICE_NAME], server.grpc)
    try:
        if credentials is None:
            server.grpc.add_insecure_port(address)
        else:
            server.grpc.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise errors.UnavailableError(
            f"{address} is in use. Stop the process that listens there, or set another port."
        ) from error
    await server.set_ready(False)
    await server.grpc.start()
    log.info("serving on %s%s", address, "" if credentials is None else " with TLS")
    try:
        yield server
    finally:
        await server._health.enter_graceful_shutdown()
        await server.grpc.stop(grace_s)
