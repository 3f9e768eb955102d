"""One model at a time: calls for the resident model run together, calls for another wait until it is their turn.

A switch begins when no call is in flight and calls for another model wait. To keep a stream of calls for the resident
model from starving the others, none is let in once another call has waited for `patience_s` (longer if loading took
longer, as models would otherwise be loaded more than they are called): those in flight end, then the model that has
waited longest is loaded. Between stop and start no model is resident, so there are never two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

LINGER_S = 0.05
"""A slot that has ended a call takes the next at once: a switch waits this long for it."""
PATIENCE_S = 60.0


class Resident(Protocol):
    """What serves one model. `ended` is done once it serves no more."""

    @property
    def ended(self) -> asyncio.Future[str]: ...

    async def stop(self) -> None:
        """Returns when all of it has ended."""
        ...


R = TypeVar("R", bound=Resident)


@dataclass(slots=True, eq=False)
class _Waiter(Generic[R]):
    model: str
    turn: asyncio.Future[R]
    since: float = field(default_factory=time.monotonic)


class Residency(Generic[R]):
    """`start` brings a model into memory and returns when it can be called; what it raises goes to the calls that wait
    for it."""

    def __init__(
        self,
        start: Callable[[str], Awaitable[R]],
        *,
        idle_stop_s: float = 0.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._start = start
        self._idle_stop_s = idle_stop_s
        self._patience_s = patience_s
        self._resident: R | None = None
        self._model = ""
        self._in_flight = 0
        self._ready_at = self._idle_since = time.monotonic()
        self._loading_s = 0.0
        self._waiting: list[_Waiter[R]] = []
        self._news = asyncio.Event()
        self._moving: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def model(self) -> str:
        """The resident model; empty when none is."""
        return self._model if self._resident is not None and not self._resident.ended.done() else ""

    @asynccontextmanager
    async def lease(self, model: str) -> AsyncIterator[R]:
        """The engine with `model` resident, for one call. Raises what starting it raised."""
        resident = self._resident
        if resident is None or self._model != model or not self._open_to(model):
            resident = await self._turn(model)
        else:
            self._in_flight += 1
        try:
            yield resident
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle_since = time.monotonic()
                if self._waiting or self._idle_stop_s:
                    self._move()

    async def close(self) -> None:
        """Stops the engine; calls that still wait are cancelled."""
        self._closed = True
        for waiter in self._waiting:
            waiter.turn.cancel()
        self._waiting.clear()
        self._news.set()
        if self._moving is not None:
            await asyncio.wait({self._moving})
        await self._stop()

    def _open_to(self, model: str) -> bool:
        """Whether a call for the resident model may join those in flight."""
        if self._resident is None or self._resident.ended.done():
            return False
        others = [waiter.since for waiter in self._waiting if waiter.model != model]
        if not others:
            return True
        waited_s = time.monotonic() - max(self._ready_at, min(others))
        return waited_s < max(self._patience_s, self._loading_s)

    async def _turn(self, model: str) -> R:
        if self._closed:
            raise asyncio.CancelledError
        waiter: _Waiter[R] = _Waiter(model, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._news.set()
        self._move()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._news.set()
            elif not waiter.turn.cancelled() and waiter.turn.exception() is None:
                # Let in and cancelled at the same moment.
                self._in_flight -= 1
                self._move()
            raise

    def _move(self) -> None:
        if self._moving is None or self._moving.done():
            self._moving = asyncio.create_task(self._until_settled())

    async def _until_settled(self) -> None:
        """Lets calls in, switches models and stops idle ones, until nothing is left to do but wait for calls to end."""
        while not self._closed:
            self._let_in()
            if self._in_flight:
                return
            if not self._waiting:
                if not await self._idle():
                    return
                continue
            lingering_s = self._idle_since + LINGER_S - time.monotonic()
            if lingering_s > 0 and self._resident is not None and not self._resident.ended.done():
                await asyncio.sleep(lingering_s)
                continue
            await self._stop()
            if self._waiting and not self._closed:
                await self._bring_in(self._waiting[0].model)

    def _let_in(self) -> None:
        resident = self._resident
        if resident is None or not self._open_to(self._model):
            return
        for waiter in [waiter for waiter in self._waiting if waiter.model == self._model]:
            self._waiting.remove(waiter)
            if not waiter.turn.done():
                self._in_flight += 1
                waiter.turn.set_result(resident)

    async def _idle(self) -> bool:
        """Stops the engine when nobody has called it for long; False when there is nothing to wait for."""
        if not self._idle_stop_s or self._resident is None:
            return False
        left = self._idle_since + self._idle_stop_s - time.monotonic()
        if left > 0:
            self._news.clear()
            await self._news_within(left)
        else:
            await self._stop()
        return True

    async def _bring_in(self, model: str) -> None:
        """Starts a model's engine; gives up when nobody waits for it any more, for instance after a cancelled job."""
        began = time.monotonic()
        starting = asyncio.ensure_future(self._start(model))
        while not starting.done():
            self._news.clear()
            await self._news_within(None, starting)
            if not any(waiter.model == model for waiter in self._waiting):
                starting.cancel()
                await asyncio.wait({starting})
        if starting.cancelled():
            return
        error = starting.exception()
        if error is None:
            self._resident, self._model = starting.result(), model
            self._ready_at = self._idle_since = time.monotonic()
            self._loading_s = self._ready_at - began
            return
        for waiter in [waiter for waiter in self._waiting if waiter.model == model]:
            self._waiting.remove(waiter)
            if not waiter.turn.done():
                waiter.turn.set_exception(error)

    async def _news_within(self, timeout_s: float | None, *others: asyncio.Future[Any]) -> None:
        """Waits until calls have come or gone, one of the others is done, or time is up."""
        news: asyncio.Future[Any] = asyncio.ensure_future(self._news.wait())
        try:
            await asyncio.wait({news, *others}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()

    async def _stop(self) -> None:
        resident, self._resident, self._model = self._resident, None, ""
        if resident is not None:
            await resident.stop()
