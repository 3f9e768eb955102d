"""Calls of models that users make through the gateway: an evaluator that serves the endpoint makes each of them.

The gateway asks at the endpoint's subject, and one of its evaluators answers with a private subject. The gateway sends
the body there in pieces, then asks for the answer, piece by piece. So an answer does not come faster than it is taken,
and never fills the memory of either side. While there is nothing to give, the evaluator says so every few seconds, and
the gateway says that it is there: either side soon notices that the other is gone. Nothing is stored or sent twice, as
each call may be charged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.bus.contract import call_session_subject, call_subject
from services.bus.operations import Bus
from services.errors import LimitReachedError, UnavailableError
from touchstone.v1 import call_pb2

log = logging.getLogger(__name__)

MOST_CALL_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the body of a call to `/v1/chat/completions` or `/v1/responses`, most."""
PIECE_BYTES: Final = 512 * 1024
_ACCEPT_S = 5.0
_ANSWER_S = 10.0
"""Longer than an evaluator waits before it says that it has nothing yet."""
_NOTHING_YET_S = 2.0
_IDLE_S = 60.0
"""An evaluator gives a call up that nobody takes the answer of for this long."""
_HELD_BYTES = 256 * 1024
_SESSION, _PART, _KIND = "Touchstone-Session", "Touchstone-Part", "Touchstone-Kind"
_MORE, _LAST = "more", "last"
_BUSY, _HEAD, _PIECE, _END, _WAIT = "busy", "head", "piece", "end", "wait"
_STOP, _HERE = b"stop", b"here"
_HERE_S = 3.0
"""How often the gateway says that it is there: its client may take no piece for long."""

_tasks: set[asyncio.Task[Any]] = set()


@dataclass(slots=True)
class CallAnswer:
    """`status` and `headers` as of HTTP; `pieces` may be read once."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[bytes]


@asynccontextmanager
async def make_call(bus: Bus, call: call_pb2.Call, body: bytes) -> AsyncGenerator[CallAnswer]:
    """The answer of a call, whose evaluator ends it if the block ends early.

    Raises UnavailableError when no evaluator serves the endpoint, or when it is gone, here and while pieces are taken;
    and LimitReachedError when too many calls wait.
    """
    nobody = f"No running evaluator serves endpoint {call.endpoint}. Start one, or choose another endpoint."
    accepted = await _asked(bus, call_subject(call.endpoint), call.SerializeToString(), {}, _ACCEPT_S, nobody)
    headers = accepted.headers or {}
    if headers.get(_KIND) == _BUSY:
        raise LimitReachedError(accepted.data.decode(), 5)
    session = headers[_SESSION]
    staying = asyncio.create_task(_stay(bus, session))
    try:
        for start in range(0, max(1, len(body)), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            part = _MORE if start + PIECE_BYTES < len(body) else _LAST
            await _asked(bus, session, piece, {_PART: part})
        head = await _next(bus, session)
        if head is None:
            raise UnavailableError(_GONE)
        told = json.loads(head.data)
        yield CallAnswer(told["status"], told["headers"], _pieces(bus, session))
    finally:
        staying.cancel()
        # In another task: the caller may be in the middle of being cancelled.
        _apart(_say(bus, session, _STOP))


_GONE = "The evaluator that makes the call does not answer any more. The call may be charged. Send it again."


async def _pieces(bus: Bus, session: str) -> AsyncIterator[bytes]:
    while (answer := await _next(bus, session)) is not None:
        yield answer.data


async def _next(bus: Bus, session: str) -> Msg | None:
    """None at the end."""
    while True:
        answer = await _asked(bus, session, b"")
        kind = (answer.headers or {}).get(_KIND)
        if kind == _END:
            return None
        if kind != _WAIT:
            return answer


async def _asked(
    bus: Bus,
    subject: str,
    data: bytes,
    headers: dict[str, str] | None = None,
    timeout_s: float = _ANSWER_S,
    nobody: str = _GONE,
) -> Msg:
    try:
        return await bus.client.request(subject, data, timeout=timeout_s, headers=headers or None)
    except nats.errors.NoRespondersError as error:
        raise UnavailableError(nobody) from error
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise UnavailableError(_GONE) from error


async def _say(bus: Bus, session: str, what: bytes) -> None:
    with suppress(nats.errors.Error, OSError):
        await bus.client.publish(session, what)


async def _stay(bus: Bus, session: str) -> None:
    while True:
        await asyncio.sleep(_HERE_S)
        await _say(bus, session, _HERE)


def _apart(work: Any) -> None:
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


# -- the evaluator's side ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Outbox:
    """What an evaluator answers. `write` waits while much of it is not taken."""

    _held: deque[tuple[str, bytes]] = field(default_factory=deque)
    _size: int = 0
    _filled: asyncio.Event = field(default_factory=asyncio.Event)
    _emptied: asyncio.Event = field(default_factory=asyncio.Event)
    started: bool = False
    """Whether the answer has begun."""
    holds_last: bool = False
    """Whether the newest piece waits for the next one, or for the end."""
    _last: bytes = b""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Comes first."""
        self.started = True
        self._put(_HEAD, json.dumps({"status": status, "headers": dict(headers)}).encode())

    async def write(self, data: bytes) -> None:
        if self.holds_last:
            data, self._last = self._last, data
        for start in range(0, len(data), PIECE_BYTES):
            while self._size >= _HELD_BYTES:
                self._emptied.clear()
                await self._emptied.wait()
            self._put(_PIECE, data[start : start + PIECE_BYTES])

    def end(self) -> None:
        for start in range(0, len(self._last), PIECE_BYTES):
            self._put(_PIECE, self._last[start : start + PIECE_BYTES])
        self._put(_END, b"")

    def _put(self, kind: str, data: bytes) -> None:
        self._held.append((kind, data))
        self._size += len(data)
        self._filled.set()

    async def take(self) -> tuple[str, bytes]:
        """What comes next; small pieces together. Waits a moment for it, then says that there is nothing yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_NOTHING_YET_S):
                await self._filled.wait()
        if not self._held:
            return _WAIT, b""
        kind, data = self._held.popleft()
        parts, size = [data], len(data)
        while kind == _PIECE and self._held and self._held[0][0] == _PIECE:
            if size + len(self._held[0][1]) > PIECE_BYTES:
                break
            parts.append(self._held.popleft()[1])
            size += len(parts[-1])
        self._size -= size
        self._emptied.set()
        if not self._held:
            self._filled.clear()
        return kind, b"".join(parts)


Handle = Callable[[call_pb2.Call, bytes, Outbox], Awaitable[None]]


@dataclass(slots=True)
class CallSessions:
    """Calls that an evaluator has accepted. `most` may be under way at a time, with bodies of up to `most_bytes`."""

    bus: Bus
    handle: Handle
    most: int
    most_bytes: int
    _open: set[asyncio.Task[None]] = field(default_factory=set)
    _subscriptions: list[Subscription] = field(default_factory=list)

    async def accept(self, endpoint: str) -> None:
        subject = call_subject(endpoint)
        # Evaluators that serve an endpoint share its calls: each is made by one.
        self._subscriptions.append(await self.bus.client.subscribe(subject, queue=subject, cb=self._on_call))

    async def refuse_further(self) -> None:
        """Others get the calls from now on."""
        for subscription in self._subscriptions:
            with suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()
        self._subscriptions.clear()

    async def end(self, grace_s: float) -> None:
        """Ends those under way after `grace_s`."""
        if self._open:
            await asyncio.wait(self._open, timeout=grace_s)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _on_call(self, msg: Msg) -> None:
        if len(self._open) >= self.most:
            busy = b"The evaluator makes as many calls as it can. Try again in a moment."
            await _answer(self.bus, msg, busy, {_KIND: _BUSY})
            return
        task = asyncio.create_task(self._session(msg))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _session(self, asked: Msg) -> None:
        # Not an inbox: the gateway may not send to where NATS answers evaluators.
        subject = call_session_subject(uuid.uuid4().hex)
        subscription = await self.bus.client.subscribe(subject)
        try:
            call = call_pb2.Call.FromString(asked.data)
            await _answer(self.bus, asked, b"", {_SESSION: subject})
            body = await self._body(subscription)
            if body is not None:
                await self._answered(subscription, call, body)
        finally:
            with suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def _body(self, subscription: Subscription) -> bytes | None:
        """None when the caller is gone, or sends too much."""
        parts: list[bytes] = []
        while (msg := await _received(subscription, _ANSWER_S)) is not None:
            parts.append(msg.data)
            if sum(map(len, parts)) > self.most_bytes:
                return None
            await _answer(self.bus, msg, b"", {_KIND: _WAIT})
            if (msg.headers or {}).get(_PART) == _LAST:
                return b"".join(parts)
        return None

    async def _answered(self, subscription: Subscription, call: call_pb2.Call, body: bytes) -> None:
        outbox = Outbox()
        working = asyncio.ensure_future(self._work(call, body, outbox))
        waiting = asyncio.ensure_future(_received(subscription, _IDLE_S))
        try:
            while (msg := await waiting) is not None:
                # Meanwhile the caller can only stop.
                waiting = asyncio.ensure_future(_received(subscription, _IDLE_S))
                taking = asyncio.ensure_future(outbox.take())
                await asyncio.wait((taking, waiting), return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    if waiting.result() is None:
                        return
                    continue
                kind, data = taking.result()
                await _answer(self.bus, msg, data, {_KIND: kind})
                if kind == _END:
                    return
        finally:
            waiting.cancel()
            working.cancel()
            await asyncio.gather(waiting, working, return_exceptions=True)

    async def _work(self, call: call_pb2.Call, body: bytes, outbox: Outbox) -> None:
        try:
            await self.handle(call, body, outbox)
        except Exception:
            log.exception("a call of %s at %s failed", call.model, call.endpoint)
        outbox.end()


async def serve_calls(sessions: CallSessions, endpoints: Collection[str]) -> None:
    """Accepts calls of these endpoints until cancelled."""
    for endpoint in endpoints:
        await sessions.accept(endpoint)
    await asyncio.get_running_loop().create_future()


async def _received(subscription: Subscription, timeout_s: float) -> Msg | None:
    """What the caller asks for. None when it stops, is gone, or asks for nothing for `timeout_s`."""
    try:
        async with asyncio.timeout(timeout_s):
            while not (msg := await subscription.next_msg(timeout=_ANSWER_S)).reply:
                if msg.data == _STOP:
                    return None
    except (nats.errors.Error, TimeoutError):
        return None
    return msg


async def _answer(bus: Bus, request: Msg, data: bytes, headers: dict[str, str]) -> None:
    # The waiting side notices a connection that breaks now.
    with suppress(nats.errors.Error, OSError):
        await bus.client.publish(request.reply, data, headers=headers)
