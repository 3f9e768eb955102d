"""Splits of Hub datasets: an evaluator reads one, the results service takes it piece by piece.

A request goes to SPLITS; one of the evaluators answers with the split's source and a private subject, and at that
subject with a piece for each request. So pieces do not come faster than they are taken, and either side notices within
a minute or two that the other is gone. Nothing is stored: an interrupted split is requested again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import nats.errors
from nats.aio.msg import Msg

from services import errors
from services.bus.contract import SPLITS, split_session_subject
from services.bus.operations import Bus
from touchstone.v1 import dataset_service_pb2, suite_pb2

log = logging.getLogger(__name__)

PIECE_BYTES: Final = 512 * 1024
_AT_ONCE = 2
_ANSWER_S = 300.0
"""The Hub may be slow, and a piece may need a whole file."""
_IDLE_S = 60.0
_ERROR, _SESSION, _END = "Touchstone-Error", "Touchstone-Session", "Touchstone-End"
_STOP = b"stop"
_AWAY = "The evaluator that reads the dataset does not answer. Try again in a moment."
_ERRORS: dict[str, Callable[[str], errors.TouchstoneError]] = {
    "invalid": errors.InvalidRequestError,
    "not-found": errors.NotFoundError,
    "unsupported": errors.UnsupportedError,
    "busy": lambda message: errors.LimitReachedError(message, 10),
    "unavailable": errors.UnavailableError,
}
_KINDS: dict[type[errors.TouchstoneError], str] = {
    errors.InvalidRequestError: "invalid",
    errors.NotFoundError: "not-found",
    errors.UnsupportedError: "unsupported",
    errors.LimitReachedError: "busy",
}


@dataclass(frozen=True, slots=True)
class Split:
    """`source` has the revision that is read; `pieces` are the bytes of JSON lines, one object per row."""

    source: suite_pb2.DataSource
    pieces: AsyncIterator[bytes]


OpenSplit = Callable[[dataset_service_pb2.CreateHubDatasetRequest], Awaitable[Split]]


@asynccontextmanager
async def read_split(bus: Bus, request: dataset_service_pb2.CreateHubDatasetRequest) -> AsyncIterator[Split]:
    """A split from some evaluator, which is informed if the block ends early. Raises what the evaluator raised, and
    UnavailableError when there is none or it is gone, here and while pieces are taken."""
    answer = await _asked(bus, SPLITS, request.SerializeToString())
    session = (answer.headers or {})[_SESSION]
    try:
        yield Split(suite_pb2.DataSource.FromString(answer.data), _taken(bus, session))
    finally:
        with suppress(nats.errors.Error, OSError):
            await bus.client.publish(session, _STOP)


async def _taken(bus: Bus, session: str) -> AsyncIterator[bytes]:
    while True:
        answer = await _asked(bus, session, b"")
        if _END in (answer.headers or {}):
            return
        yield answer.data


async def _asked(bus: Bus, subject: str, data: bytes) -> Msg:
    try:
        answer = await bus.client.request(subject, data, timeout=_ANSWER_S)
    except nats.errors.NoRespondersError as error:
        away = "No evaluator is running to read the dataset. Start one." if subject == SPLITS else _AWAY
        raise errors.UnavailableError(away) from error
    except (nats.errors.Error, OSError) as error:
        raise errors.UnavailableError(_AWAY) from error
    kind = (answer.headers or {}).get(_ERROR)
    if kind is not None:
        raise _ERRORS.get(kind, errors.UnavailableError)(answer.data.decode(errors="replace"))
    return answer


async def serve_splits(bus: Bus, open_split: OpenSplit) -> None:
    """Answers such requests until cancelled, two at once. Evaluators share them: each is answered by one."""
    sessions: set[asyncio.Task[None]] = set()

    async def on_request(msg: Msg) -> None:
        if len(sessions) >= _AT_ONCE:
            busy = errors.LimitReachedError(
                "The evaluator is reading as many datasets as it can. Try again in a moment.", 10
            )
            await _refuse(bus, msg, busy)
            return
        session = asyncio.create_task(_session(bus, msg, open_split))
        sessions.add(session)
        session.add_done_callback(sessions.discard)

    subscription = await bus.client.subscribe(SPLITS, queue=SPLITS, cb=on_request)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        for session in sessions:
            session.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
        with suppress(nats.errors.Error, OSError):
            await subscription.unsubscribe()


async def _session(bus: Bus, asked: Msg, open_split: OpenSplit) -> None:
    # Not an inbox: the results service may not send to where NATS answers evaluators.
    subject = split_session_subject(uuid.uuid4().hex)
    subscription = await bus.client.subscribe(subject)

    async def next_request() -> Msg | None:
        """None when no more is wanted, or no request comes any more."""
        try:
            request = await subscription.next_msg(timeout=_IDLE_S)
        except nats.errors.Error as error:
            log.warning("a dataset was not read completely: %s", error or type(error).__name__)
            return None
        return None if request.data == _STOP else request

    waiting: Msg | None = asked
    try:
        split = await open_split(dataset_service_pb2.CreateHubDatasetRequest.FromString(asked.data))
        await _answer(bus, asked, split.source.SerializeToString(), {_SESSION: subject})
        waiting = None
        async for whole in split.pieces:
            for start in range(0, len(whole), PIECE_BYTES):
                request = await next_request()
                if request is None:
                    return
                await _answer(bus, request, whole[start : start + PIECE_BYTES], {})
        request = await next_request()
        if request is not None:
            await _answer(bus, request, b"", {_END: "1"})
    except Exception as error:
        if isinstance(error, errors.TouchstoneError):
            told = error
        else:
            log.exception("a dataset could not be read")
            told = errors.UnavailableError("The evaluator failed to read the dataset. Its log has the details.")
        request = waiting or await next_request()
        if request is not None:
            await _refuse(bus, request, told)
    finally:
        with suppress(nats.errors.Error, OSError):
            await subscription.unsubscribe()


async def _refuse(bus: Bus, request: Msg, error: errors.TouchstoneError) -> None:
    kind = next((_KINDS[each] for each in type(error).__mro__ if each in _KINDS), "unavailable")
    await _answer(bus, request, error.message.encode()[:PIECE_BYTES], {_ERROR: kind})


async def _answer(bus: Bus, request: Msg, data: bytes, headers: dict[str, str]) -> None:
    # The waiting side notices a connection that breaks now.
    with suppress(nats.errors.Error, OSError):
        await bus.client.publish(request.reply, data, headers=headers or None)
