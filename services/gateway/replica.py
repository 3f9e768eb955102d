"""The copy of the results, which answers what requests only read while the results service is away.

A request that changes something, and an event stream, never get an answer of the copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Sent

from services.words.addresses import AS_OF

HEADER = "Touchstone-As-Of"
_READING = ("GET", "HEAD")
_LIVE = "/events"
_LOOK_S = 0.3
Metadata = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Age:
    """When the oldest answer that a request got of the copy was so, as ISO 8601; empty without one."""

    as_of: str = ""

    @property
    def clock(self) -> str:
        """Its time of day in UTC, with the date if that is not today's."""
        date, _, time = self.as_of.partition("T")
        return time[:8] if date == datetime.now(UTC).date().isoformat() else f"{date} {time[:8]}".strip()

    def note(self, as_of: str) -> None:
        self.as_of = min(one for one in (self.as_of, as_of) if one)


_age: ContextVar[Age | None] = ContextVar("age of what the request has read", default=None)


@contextmanager
def reading() -> Iterator[Age]:
    """Inside, the copy may answer: this task and those that it waits for."""
    age = Age()
    token = _age.set(age)
    try:
        yield age
    finally:
        _age.reset(token)


def age() -> Age | None:
    """Of the request that is being answered; None where the copy may not answer."""
    return _age.get()


class Reading:
    """Lets the copy answer requests that only read. Their answers then say as of when they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _READING or scope["path"] == _LIVE:
            await self.app(scope, receive, send)
            return
        with reading() as found:

            async def dated(message: Sent) -> None:
                if message["type"] == "http.response.start" and found.as_of:
                    MutableHeaders(scope=message)[HEADER] = found.as_of
                await send(message)

            await self.app(scope, receive, dated)


class Replica:
    """`stubs` are, by service, the results service's own and the copy's. `serving` asks the results service
    whether it serves."""

    def __init__(
        self, stubs: Sequence[tuple[ServiceDescriptor, Any, Any]], serving: Callable[[], Awaitable[bool]]
    ) -> None:
        self._methods: dict[Any, Any] = {}
        for service, own, copy in stubs:
            for method in service.methods:
                self._methods[getattr(own, method.name)] = getattr(copy, method.name)
        self._serving = serving
        self._looking: asyncio.Task[None] | None = None
        self.away = False
        """Whether the results service was found to be away, and has not been found again."""

    def gone(self) -> None:
        """The results service is away. It is looked for until it serves."""
        self.away = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._until_back())

    async def _until_back(self) -> None:
        while self.away:
            if await self._serving():
                self.away = False
            else:
                await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait((self._looking,))

    async def answer(self, method: Any, request: Message, metadata: Metadata, timeout_s: float) -> Any:
        """The copy's answer to a call of the results service. Raises AioRpcError."""
        call = self._methods[method](request, timeout=timeout_s, metadata=metadata)
        answer = await call
        await _note(call)
        return answer

    async def stream(self, method: Any, request: Message, metadata: Metadata) -> AsyncGenerator[Any]:
        """The same, of a call with several answers."""
        call = self._methods[method](request, metadata=metadata)
        try:
            await _note(call)
            async for answer in call:
                yield answer
        finally:
            call.cancel()


async def _note(call: Any) -> None:
    told = dict(await call.initial_metadata())
    if (noting := _age.get()) is not None and AS_OF in told:
        noting.note(str(told[AS_OF]))
