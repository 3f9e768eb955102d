"""Several addresses of one service: calls go to the one that answered last, and pass over those that do not lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import grpc

from services.words.addresses import LOOK, LOOK_S, Search, silent


class Balanced(grpc.aio.Channel):
    """Channels to the addresses of one service as one channel.

    Calls find their way as `Search` says; `once` are the methods, by service, that must not be repeated. Requests that
    are streams go to one address, which `find` looks for, and are left to the caller.
    """

    def __init__(self, parts: Sequence[grpc.aio.Channel], once: Mapping[str, Sequence[str]]) -> None:
        self.parts = list(parts)
        self._order = list(parts)
        self._once = {f"/{service}/{method}" for service, methods in once.items() for method in methods}

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        made = {part: part.unary_unary(method, *args, **options) for part in self.parts}

        def call(request: Any, *, timeout: float | None = None, **given: Any) -> asyncio.Task[Any]:
            # A task is awaited and cancelled like a call.
            search = self._search(method, timeout)
            return asyncio.ensure_future(
                _answer(search, lambda part: made[part](request, timeout=search.left_s, **given))
            )

        return call

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        made = {part: part.unary_stream(method, *args, **options) for part in self.parts}

        def call(request: Any, *, timeout: float | None = None, **given: Any) -> _Stream:
            search = self._search(method, timeout)
            return _Stream(search, lambda part: made[part](request, timeout=search.left_s, **given))

        return call

    def _search(self, method: str, timeout_s: float | None) -> Search[grpc.aio.Channel]:
        return Search(self._order, timeout_s, once=method in self._once)

    async def find(self) -> None:
        """Puts an address that answers first, for a call whose requests are a stream: it cannot be sent again."""
        for part in list(self._order):
            try:
                await part.unary_unary(LOOK, bytes, bytes)(b"", timeout=LOOK_S)
            except grpc.aio.AioRpcError as error:
                if silent(error):
                    continue
            self._order[:] = [part, *(one for one in self._order if one is not part)]
            return

    def stream_unary(self, *args: Any, **options: Any) -> Any:
        made = {part: part.stream_unary(*args, **options) for part in self.parts}
        return lambda *given, **kept: made[self._order[0]](*given, **kept)

    def stream_stream(self, *args: Any, **options: Any) -> Any:
        made = {part: part.stream_stream(*args, **options) for part in self.parts}
        return lambda *given, **kept: made[self._order[0]](*given, **kept)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        states = [part.get_state(try_to_connect) for part in self._order]
        ready = grpc.ChannelConnectivity.READY
        return ready if ready in states else states[0]

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._order[0].wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._order[0].channel_ready()

    async def close(self, grace: float | None = None) -> None:
        for part in self.parts:
            await part.close(grace)

    async def __aenter__(self) -> Balanced:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


async def _answer(search: Search[grpc.aio.Channel], begin: Callable[[grpc.aio.Channel], Any]) -> Any:
    while True:
        part = search.current
        try:
            return await begin(part)
        except grpc.aio.AioRpcError as error:
            await _pass_over(search, part, error)


async def _pass_over(search: Search[grpc.aio.Channel], part: grpc.aio.Channel, error: grpc.aio.AioRpcError) -> None:
    """Raises the error if the call must not be sent again."""
    if (pause_s := search.pause_s(part, error)) is None:
        raise error
    await asyncio.sleep(pause_s)


class _Stream:
    """The answers of a call. Once the first has come, its server is kept, and errors are raised."""

    def __init__(self, search: Search[grpc.aio.Channel], begin: Callable[[grpc.aio.Channel], Any]) -> None:
        self._search, self._begin = search, begin
        self._call: Any = None
        self._answers = self._read()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._answers

    async def _read(self) -> AsyncIterator[Any]:
        while True:
            part = self._search.current
            self._call = self._begin(part)
            begun = False
            try:
                async for answer in self._call:
                    begun = True
                    yield answer
            except grpc.aio.AioRpcError as error:
                if begun:
                    raise
                await _pass_over(self._search, part, error)
            else:
                return

    def cancel(self) -> bool:
        return bool(self._call is not None and self._call.cancel())
