"""What stubs give back for a call that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

import grpc
from grpc import StatusCode


class Exchange(Protocol):
    """One try of a call."""

    outcome: asyncio.Future[Any]

    def feed(self, data: bytes | None) -> None:
        """The next message of the request, or None at its end."""

    def leave(self) -> None: ...


class UnaryCall:
    """Of one request and one answer: it is awaited."""

    def __init__(self, work: Any, deserialize: Any) -> None:
        self._work, self._deserialize = work, deserialize

    def __await__(self) -> Generator[Any, Any, Any]:
        data = yield from self._work.__await__()
        return self._deserialize(data)


class StreamCall:
    """Of a stream of requests, as the gateway makes it for uploads: see `services.rpc.send`. `begun` finds a server and
    begins to ask it; there is one try."""

    def __init__(
        self, begun: Coroutine[Any, Any, Exchange], deadline: float | None, serialize: Any, deserialize: Any
    ) -> None:
        self._serialize, self._deserialize = serialize, deserialize
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answer = asyncio.ensure_future(self._run(begun, deadline))

    async def _run(self, begun: Coroutine[Any, Any, Exchange], deadline: float | None) -> Any:
        exchange = await begun
        feeding = asyncio.create_task(self._feed(exchange))
        try:
            async with asyncio.timeout_at(deadline):
                return self._deserialize(await exchange.outcome)
        except TimeoutError:
            exchange.leave()
            raise call_error(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
        except asyncio.CancelledError:
            exchange.leave()
            raise
        finally:
            feeding.cancel()

    async def _feed(self, exchange: Exchange) -> None:
        while (data := await self._pieces.get()) is not None:
            exchange.feed(data)
        exchange.feed(None)

    async def write(self, request: Any) -> None:
        """Raises InvalidStateError for a call that is over."""
        if self._answer.done():
            raise asyncio.InvalidStateError("the call is over")
        self._pieces.put_nowait(self._serialize(request))
        await asyncio.sleep(0)

    async def done_writing(self) -> None:
        self._pieces.put_nowait(None)

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from self._answer.__await__())

    def cancel(self) -> None:
        self._answer.cancel()

    def add_done_callback(self, tell: Callable[[StreamCall], None]) -> None:
        self._answer.add_done_callback(lambda _: tell(self))

    def _error(self) -> grpc.aio.AioRpcError:
        """Of a call that is over, what it ended with."""
        if self._answer.cancelled():
            return call_error(StatusCode.CANCELLED, "")
        error = self._answer.exception()
        return error if isinstance(error, grpc.aio.AioRpcError) else call_error(StatusCode.OK, "")

    async def code(self) -> StatusCode:
        return self._error().code()

    async def details(self) -> str:
        return self._error().details() or ""

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return self._error().trailing_metadata()


def call_error(code: StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)
