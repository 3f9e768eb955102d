"""gRPC as every service speaks it: identity, error mapping, server and channel. One way for all.

Identity travels in call metadata and is read by `IdentityInterceptor` only:

- `authorization: Bearer <token>` or `x-api-key: <token>` names a user;
- a service's token (role service) may add `touchstone-user` and `touchstone-role` to speak on behalf of a user;
- without tokens (local mode) every caller is `local`, an admin.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import hmac
import ipaddress
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

from services import errors
from touchstone.v1 import token_pb2

log = logging.getLogger(__name__)

TokenLookup = Callable[[str], Awaitable[token_pb2.Token | None]]
"""Finds a token by the SHA-256 hex digest of its text."""

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_PUBLIC_SERVICES = ("/grpc.health.v1.Health/", "/grpc.reflection.v1alpha.ServerReflection/")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is calling."""

    user: str
    role: token_pb2.Role

    @property
    def is_admin(self) -> bool:
        return self.role in (token_pb2.ROLE_ADMIN, token_pb2.ROLE_SERVICE)


@dataclass(frozen=True, slots=True)
class Settings:
    """`auth` is "local" (no tokens, loopback only) or "token"; services share `service_token`."""

    auth: str
    service_token: str

    @classmethod
    def from_env(cls) -> Settings:
        """Raises InvalidRequestError when the variables contradict each other."""
        auth = os.environ.get("TOUCHSTONE_AUTH", "local")
        token = os.environ.get("TOUCHSTONE_SERVICE_TOKEN", "")
        if auth not in ("local", "token"):
            raise errors.InvalidRequestError(f"TOUCHSTONE_AUTH is {auth!r}; it may be local or token.")
        if auth == "token" and not token:
            raise errors.InvalidRequestError("TOUCHSTONE_AUTH=token needs TOUCHSTONE_SERVICE_TOKEN, a shared secret.")
        return cls(auth, token)


LOCAL = Identity("local", token_pb2.ROLE_ADMIN)
_identity: contextvars.ContextVar[Identity] = contextvars.ContextVar("identity", default=LOCAL)


def identity() -> Identity:
    """The caller of the RPC being served."""
    return _identity.get()


def require_admin() -> Identity:
    caller = identity()
    if not caller.is_admin:
        raise errors.PermissionDeniedError("Only an admin may do this.")
    return caller


def is_loopback(address: str) -> bool:
    """Whether `host:port` names this machine's loopback."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Authenticator:
    """Turns a token into an identity. `service_token` is the services' own; without `lookup`, local mode."""

    def __init__(self, lookup: TokenLookup | None, service_token: str) -> None:
        self._lookup = lookup
        self._service_token = service_token

    @property
    def local(self) -> bool:
        """Whether everybody is let in as the admin `local`."""
        return self._lookup is None

    async def __call__(self, token: str) -> Identity:
        """Raises UnauthenticatedError for a missing, unknown or expired token."""
        if token and self._service_token and hmac.compare_digest(token.encode(), self._service_token.encode()):
            return Identity("scheduler", token_pb2.ROLE_SERVICE)
        if self._lookup is None:
            return LOCAL  # local mode
        if not token:
            raise errors.UnauthenticatedError("Send a token: Authorization: Bearer <token>, or X-API-Key: <token>.")
        stored = await self._lookup(token_digest(token))
        if stored is None:
            raise errors.UnauthenticatedError("The token is not known. Ask an admin for a new one.")
        if stored.HasField("expires_at") and stored.expires_at.ToSeconds() < time.time():
            raise errors.UnauthenticatedError("The token has expired. Ask an admin for a new one.")
        return Identity(stored.user, stored.role)


# -- errors ----------------------------------------------------------------------------------------------------

_CODES: dict[type[errors.TouchstoneError], grpc.StatusCode] = {
    errors.InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    errors.PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    errors.NotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.LimitReachedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.UnsupportedError: grpc.StatusCode.UNIMPLEMENTED,
    errors.DeadlineError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
}
_ERRORS = {code: error for error, code in _CODES.items()}


def to_status(error: errors.TouchstoneError) -> Any:
    """A google.rpc.Status with typed details."""
    code = _code(error)
    assert code is not None
    details: list[Any] = []
    if isinstance(error, errors.InvalidRequestError):
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    elif isinstance(error, errors.LimitReachedError):
        details.append(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=error.retry_after_s)))
    elif isinstance(error, errors.ConflictError):
        failure = error_details_pb2.PreconditionFailure.Violation(type="STATE", description=error.message)
        details.append(error_details_pb2.PreconditionFailure(violations=[failure]))
    packed = []
    for detail in details:
        any_ = any_pb2.Any()
        any_.Pack(detail)
        packed.append(any_)
    status = status_pb2.Status(code=code.value[0], message=error.message, details=packed)
    return rpc_status.to_status(status)


def _code(error: errors.TouchstoneError) -> grpc.StatusCode | None:
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)


def from_rpc_error(error: grpc.aio.AioRpcError) -> errors.TouchstoneError:
    """The domain error that a failed call stands for, with its details."""
    message = error.details() or "No details given."
    kind = _ERRORS.get(error.code())
    if kind is None:
        return errors.TouchstoneError(message)
    status = _status_of(error)
    if kind is errors.LimitReachedError:
        retry = error_details_pb2.RetryInfo()
        seconds = next((retry.retry_delay.seconds for d in status.details if d.Unpack(retry)), 1) if status else 1
        return errors.LimitReachedError(message, int(seconds))
    if kind is errors.InvalidRequestError:
        bad = error_details_pb2.BadRequest()
        field = next((bad.field_violations[0].field for d in status.details if d.Unpack(bad)), "") if status else ""
        return errors.InvalidRequestError(message, field)
    return kind(message)


def _status_of(error: grpc.aio.AioRpcError) -> Any:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value)
    return None


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
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._stream(handler.unary_stream, metadata),
                handler.request_deserializer,
                handler.response_serializer,
            )
        return grpc.unary_unary_rpc_method_handler(
            self._unary(handler.unary_unary, metadata), handler.request_deserializer, handler.response_serializer
        )

    def _unary(self, behaviour: Any, metadata: dict[str, str]) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                _identity.set(await self._caller(metadata))
                return await behaviour(request, context)
            except Exception as error:
                await _abort(context, error)

        return call

    def _stream(self, behaviour: Any, metadata: dict[str, str]) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                _identity.set(await self._caller(metadata))
                async for response in behaviour(request, context):
                    yield response
            except Exception as error:
                await _abort(context, error)

        return call

    async def _caller(self, metadata: dict[str, str]) -> Identity:
        scheme, _, bearer = metadata.get("authorization", "").partition(" ")
        token = bearer if scheme.lower() == "bearer" else metadata.get("x-api-key", "")
        caller = await self._authenticate(token)
        if caller.role == token_pb2.ROLE_SERVICE and "touchstone-user" in metadata:
            role = token_pb2.ROLE_ADMIN if metadata.get("touchstone-role") == "admin" else token_pb2.ROLE_USER
            return Identity(metadata["touchstone-user"], role)
        return caller


async def _abort(context: Any, error: Exception) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, errors.TouchstoneError) and _code(error) is not None:
        await context.abort_with_status(to_status(error))
    log.exception("unexpected error in an RPC", exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, "Internal error; the service's log has the details.")


# -- server ----------------------------------------------------------------------------------------------------


class Server:
    """A gRPC server with identity, health and reflection. Use `serve`."""

    def __init__(self, authenticate: Authenticator) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", 30_000),
        ]
        self.grpc = grpc.aio.server(interceptors=[IdentityInterceptor(authenticate)], options=options)
        self._health = health.aio.HealthServicer()
        self._names: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)

    def add(self, register: Callable[[Any, Any], None], servicer: Any, name: str) -> None:
        """Registers a servicer under its full service name."""
        register(servicer, self.grpc)
        self._names.append(name)

    async def set_ready(self, ready: bool) -> None:
        """What health answers for the whole server and each service."""
        state = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", *self._names):
            await self._health.set(name, state)


@asynccontextmanager
async def serve(
    address: str,
    authenticate: Authenticator,
    services: Sequence[tuple[Callable[[Any, Any], None], Any, str]] = (),
    *,
    grace_s: float = 5,
) -> AsyncIterator[Server]:
    """Serves on `host:port` inside the context; health says NOT_SERVING until `set_ready(True)`."""
    if authenticate.local and not is_loopback(address):
        raise errors.InvalidRequestError(
            f"Local mode asks nobody for a token, so it listens on loopback only, not on {address}. "
            "Set TOUCHSTONE_AUTH=token."
        )
    server = Server(authenticate)
    for register, servicer, name in services:
        server.add(register, servicer, name)
    names = [name for *_, name in services] + [health.SERVICE_NAME, reflection.SERVICE_NAME]
    reflection.enable_server_reflection(names, server.grpc)
    try:
        server.grpc.add_insecure_port(address)
    except RuntimeError as error:
        raise errors.UnavailableError(f"{address} is in use. Stop what listens there or set another port.") from error
    await server.set_ready(False)
    await server.grpc.start()
    log.info("serving on %s", address)
    try:
        yield server
    finally:
        await server._health.enter_graceful_shutdown()
        await server.grpc.stop(grace_s)


# -- client ----------------------------------------------------------------------------------------------------

_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{}],
            "waitForReady": True,
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
        # Done twice, these would answer that the job cannot be cancelled or retried any more.
        {
            "name": [
                {"service": "touchstone.v1.SchedulerService", "method": "CancelJob"},
                {"service": "touchstone.v1.SchedulerService", "method": "RetryJob"},
            ],
            "waitForReady": True,
        },
    ],
}


def channel(address: str) -> grpc.aio.Channel:
    """A channel that reconnects and retries UNAVAILABLE. `address` may list several servers: a:1,b:2."""
    target = f"ipv4:{address}" if "," in address else address
    return grpc.aio.insecure_channel(
        target,
        options=[
            ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.initial_reconnect_backoff_ms", 100),
        ],
    )


def metadata(service_token: str, caller: Identity | None = None) -> tuple[tuple[str, str], ...]:
    """Call metadata of a service, on behalf of `caller` when given."""
    pairs: list[tuple[str, str]] = []
    if service_token:
        pairs.append(("authorization", f"Bearer {service_token}"))
    if caller is not None:
        pairs += [("touchstone-user", caller.user), ("touchstone-role", "admin" if caller.is_admin else "user")]
    return tuple(pairs)


# -- process ---------------------------------------------------------------------------------------------------


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs a service until SIGTERM or SIGINT sets the event it is given.

    A TouchstoneError ends the process with its sentence and exit code 1.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    logging.Formatter.converter = time.gmtime
    logging.getLogger("httpx").setLevel(logging.WARNING)

    async def supervised() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        await main(stop)

    try:
        asyncio.run(supervised())
    except errors.TouchstoneError as error:
        sys.exit(f"touchstone: {error.message}")
