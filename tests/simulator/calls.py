"""gRPC without a wire: the real stubs, interceptor and servicers, with delays, losses and deadlines between them.

A call whose connection breaks may have been served or not, as over a real one; the channel's own settings say which
calls are then sent again.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import grpc
from grpc import StatusCode

from services.rpc import client
from tests.simulator.loop import Process, SimLoop, current
from tests.simulator.pending_calls import StreamCall, UnaryCall, call_error

_AGAIN_S = 0.1
_MOST_TRIES = 5


def _once_only() -> set[str]:
    """Methods that a channel does not send again, by the services' own settings."""
    return {f"/{service}/{method}" for service, methods in client.ONCE.items() for method in methods}


class Wires:
    """All servers by address. `delay` gives the seconds that a message takes, `breaks` whether a call's connection
    breaks on the way there or back."""

    def __init__(self, loop: SimLoop, delay: Callable[[], float], breaks: Callable[[], bool]) -> None:
        self.loop, self.delay, self.breaks = loop, delay, breaks
        self.fails: Callable[[], StatusCode | None] = lambda: None
        """The code with which a call of one service to another is answered, whether it was served or not; None for the
        answer that it has."""
        self.servers: dict[str, FakeGrpcServer] = {}
        self.once_only = _once_only()

    def server(self, *, interceptors: Any = (), **_: Any) -> FakeGrpcServer:
        """In place of `grpc.aio.server`."""
        return FakeGrpcServer(self, list(interceptors))

    def channel(self, target: str, options: Any = ()) -> FakeChannel:
        """In place of `grpc.aio.insecure_channel`."""
        return FakeChannel(self, target)


class FakeGrpcServer:
    """As much of a server as the services use."""

    def __init__(self, wires: Wires, interceptors: list[Any]) -> None:
        self._wires = wires
        self._interceptors = interceptors
        self._handlers: dict[str, Any] = {}
        self._address = ""
        self.process: Process | None = current()
        self.open = False
        self._context = contextvars.copy_context()
        self.running: set[asyncio.Task[None]] = set()
        self.on_end: list[Callable[[], None]] = []

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Those that are registered by name are enough."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        self._handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    def add_insecure_port(self, address: str) -> int:
        known = self._wires.servers.get(address)
        if known is not None and known.open and (known.process is None or known.process.alive):
            raise RuntimeError("the address is in use")
        self._address = address
        return 1

    async def start(self) -> None:
        self.open = True
        self._wires.servers[self._address] = self
        if self.process is not None:
            self.process.on_kill.append(self._died)

    def _died(self) -> None:
        self.open = False
        for tell in self.on_end:
            tell()
        self.on_end.clear()

    def forget(self, tell: Callable[[], None]) -> None:
        with suppress(ValueError):
            self.on_end.remove(tell)

    async def stop(self, grace: float | None) -> None:
        self.open = False
        if self.running and grace:
            await asyncio.wait(set(self.running), timeout=grace)
        for task in list(self.running):
            task.cancel()
        self._died()

    def serve(self, exchange: _Exchange) -> None:
        """Begins to serve a request, in the server's process."""
        context = self._context.copy()
        context.run(self._begin, exchange)

    def _begin(self, exchange: _Exchange) -> None:
        if exchange.is_streamed and exchange.is_cut:
            return
        task = asyncio.get_running_loop().create_task(self._serve(exchange))
        exchange.serving = task
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def _serve(self, exchange: _Exchange) -> None:
        details = _Details(exchange.method, exchange.metadata)

        async def find(_: Any) -> Any:
            return self._handlers.get(exchange.method)

        continuation: Any = find
        for interceptor in reversed(self._interceptors):
            continuation = _intercepted(interceptor, continuation)
        context = _ServicerContext(exchange, self._wires.loop)
        try:
            handler = await continuation(details)
            if handler is None:
                raise _Aborted(StatusCode.UNIMPLEMENTED, exchange.method, ())
            if handler.request_streaming:
                requests = exchange.requests(handler.request_deserializer or bytes)
                exchange.answer(handler.response_serializer(await handler.stream_unary(requests, context)))
                return
            # Without a deserializer gRPC gives the bytes.
            request = (handler.request_deserializer or bytes)(exchange.request)
            if handler.response_streaming:
                async for piece in handler.unary_stream(request, context):
                    exchange.piece(handler.response_serializer(piece))
                exchange.answer(b"")
            else:
                exchange.answer(handler.response_serializer(await handler.unary_unary(request, context)))
        except _Aborted as error:
            exchange.refuse(error.code, error.details, error.trailing)
        except asyncio.CancelledError:
            exchange.refuse(StatusCode.CANCELLED, "cancelled", ())
        except Exception as error:
            exchange.refuse(StatusCode.UNKNOWN, f"{type(error).__name__}: {error}", ())


def _intercepted(interceptor: Any, continuation: Any) -> Any:
    async def call(details: Any) -> Any:
        return await interceptor.intercept_service(continuation, details)

    return call


class _Details:
    def __init__(self, method: str, metadata: Any) -> None:
        self.method, self.invocation_metadata = method, metadata


class _Aborted(grpc.aio.AbortError):
    def __init__(self, code: StatusCode, details: str, trailing: Any) -> None:
        super().__init__(details)
        self.code, self.details, self.trailing = code, details, trailing


class _ServicerContext:
    """What servicers and the interceptor use of a call's context."""

    def __init__(self, exchange: _Exchange, loop: SimLoop) -> None:
        self._exchange, self._loop = exchange, loop

    def time_remaining(self) -> float | None:
        deadline = self._exchange.deadline
        return None if deadline is None else max(0.0, deadline - self._loop.time())

    def invocation_metadata(self) -> Any:
        return self._exchange.metadata

    def peer(self) -> str:
        return "ipv4:127.0.0.1:9"

    async def abort_with_status(self, status: Any) -> None:
        raise _Aborted(status.code, status.details, status.trailing_metadata or ())

    async def abort(self, code: StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        raise _Aborted(code, details, trailing_metadata)


class _Exchange:
    """One try of one call. Its outcome comes to the caller's process after the wire's delay."""

    def __init__(self, wires: Wires, method: str, request: bytes, metadata: Any, deadline: float | None) -> None:
        self._wires = wires
        self.method, self.request, self.metadata, self.deadline = method, request, metadata, deadline
        self.serving: asyncio.Task[None] | None = None
        self.outcome: asyncio.Future[Any] = wires.loop.create_future()
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        """Of a streamed request."""
        self.is_streamed = self.is_cut = False
        """Whether the request is a stream, and whether its rest never comes."""
        self._context = contextvars.copy_context()
        self._arrives = self._sent = 0.0
        self._lost_back = wires.breaks()
        # Users are told what happened; what one service tells another is its own affair.
        self._failure = wires.fails() if current() is not None else None

    def send(self, server: FakeGrpcServer) -> None:
        server.on_end.append(self._broken)
        if self._wires.breaks():
            self._wires.loop.call_later(self._wires.delay(), self._broken)
            return
        # What is under way when the caller dies still arrives.
        nobody = contextvars.Context()
        self._wires.loop.call_later(self._wires.delay(), self._arrived, server, context=nobody)

    def _arrived(self, server: FakeGrpcServer) -> None:
        if server.open and (server.process is None or server.process.alive):
            server.serve(self)
        else:
            self._broken()

    def _back(self, work: Callable[..., None], *args: Any) -> None:
        """In order, as on one connection."""
        self._arrives = max(self._arrives, self._wires.loop.time() + self._wires.delay())
        self._wires.loop.call_at(self._arrives, work, *args, context=self._context)

    def feed(self, data: bytes | None) -> None:
        """The next message of a streamed request on its way to the server, or None at its end."""
        loop, nobody = self._wires.loop, contextvars.Context()
        self._sent = max(self._sent, loop.time() + self._wires.delay())
        if self._wires.breaks():
            loop.call_at(self._sent, self._broken)
            loop.call_at(self._sent, self._cut, context=nobody)
        else:
            loop.call_at(self._sent, self.incoming.put_nowait, data, context=nobody)

    async def requests(self, deserialize: Callable[[bytes], Any]) -> AsyncIterator[Any]:
        while (data := await self.incoming.get()) is not None:
            yield deserialize(data)

    def _cut(self) -> None:
        self.is_cut = True
        if self.serving is not None and not self.serving.done():
            self.serving.cancel()

    def piece(self, data: bytes) -> None:
        self._back(self.pieces.put_nowait, data)

    def answer(self, data: bytes) -> None:
        if self._failure is not None:
            self.refuse(self._failure, "an injected failure", ())
        elif self._lost_back:
            self._broken()
        else:
            self._back(self._settle, data, None)

    def refuse(self, code: StatusCode, details: str, trailing: Any) -> None:
        error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details=details)
        self._back(self._settle, b"", error)

    def _broken(self) -> None:
        error = grpc.aio.AioRpcError(
            StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), details="the connection broke"
        )
        self._back(self._settle, b"", error)

    def _settle(self, data: bytes, error: Exception | None) -> None:
        if not self.outcome.done():
            if error is not None:
                self.outcome.set_exception(error)
            else:
                self.outcome.set_result(data)
            self.pieces.put_nowait(None)

    def leave(self) -> None:
        """The caller wants no answer any more; the server learns of it later."""
        self.outcome.cancel()

        self._wires.loop.call_later(self._wires.delay(), self._cut, context=contextvars.Context())


class FakeChannel:
    """A channel to one address, or to several in turn."""

    def __init__(self, wires: Wires, target: str) -> None:
        self._wires = wires
        self._targets = target.removeprefix("ipv4:").split(",")
        self._asked = 0

    def unary_unary(self, method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        def call(request: Any, *, timeout: float | None = None, metadata: Any = (), **_: Any) -> UnaryCall:
            work = self._ask(method, request_serializer(request), tuple(metadata or ()), timeout)
            return UnaryCall(work, response_deserializer)

        return call

    def unary_stream(self, method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        def call(request: Any, *, timeout: float | None = None, metadata: Any = (), **_: Any) -> AsyncIterator[Any]:
            data = request_serializer(request)
            return self._stream(method, data, tuple(metadata or ()), timeout, response_deserializer)

        return call

    def stream_unary(self, method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        def call(*, timeout: float | None = None, metadata: Any = (), **_: Any) -> StreamCall:
            deadline = None if timeout is None else self._wires.loop.time() + timeout
            begun = self._begin(method, tuple(metadata or ()), deadline)
            return StreamCall(begun, deadline, request_serializer, response_deserializer)

        return call

    def stream_stream(self, method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            raise NotImplementedError(f"{method} is not simulated")

        return call

    async def close(self, grace: float | None = None) -> None:
        """There is nothing to close."""

    async def _server(self, deadline: float | None) -> FakeGrpcServer:
        """Waits for it, as `waitForReady` says."""
        while True:
            found = [s for target in self._targets if (s := self._wires.servers.get(target)) is not None and s.open]
            if found:
                self._asked += 1
                return found[self._asked % len(found)]
            if deadline is not None and self._wires.loop.time() >= deadline:
                raise call_error(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
            await asyncio.sleep(_AGAIN_S)

    async def _begin(self, method: str, metadata: Any, deadline: float | None) -> _Exchange:
        exchange = _Exchange(self._wires, method, b"", metadata, deadline)
        exchange.is_streamed = True
        server = await self._server(deadline)
        exchange.outcome.add_done_callback(lambda _: server.forget(exchange._broken))
        exchange.send(server)
        return exchange

    async def _ask(self, method: str, data: bytes, metadata: Any, within: float | None) -> bytes:
        deadline = None if within is None else self._wires.loop.time() + within
        tries = 1 if method in self._wires.once_only else _MOST_TRIES
        while True:
            tries -= 1
            server = await self._server(deadline)
            exchange = _Exchange(self._wires, method, data, metadata, deadline)
            exchange.send(server)
            try:
                async with asyncio.timeout_at(deadline):
                    found: bytes = await exchange.outcome
                    return found
            except TimeoutError:
                exchange.leave()
                raise call_error(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
            except asyncio.CancelledError:
                exchange.leave()
                raise
            except grpc.aio.AioRpcError as error:
                if error.code() != StatusCode.UNAVAILABLE or not tries:
                    raise
            finally:
                server.forget(exchange._broken)
            await asyncio.sleep(_AGAIN_S)

    async def _stream(
        self,
        method: str,
        data: bytes,
        metadata: Any,
        within: float | None,
        deserialize: Any,
    ) -> AsyncIterator[Any]:
        deadline = None if within is None else self._wires.loop.time() + within
        exchange = _Exchange(self._wires, method, data, metadata, deadline)
        exchange.send(await self._server(deadline))
        try:
            async with asyncio.timeout_at(deadline):
                while (piece := await exchange.pieces.get()) is not None:
                    yield deserialize(piece)
                await exchange.outcome
        except TimeoutError:
            raise call_error(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        finally:
            exchange.leave()
