"""Calls whose requests are a stream, as their callers make them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import grpc

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

_CHECK_S = 0.005
_LATE_CHECKS = 400

_Told = tuple[grpc.StatusCode, str, grpc.aio.Metadata]


async def send(call: grpc.aio.StreamUnaryCall[Q, R], requests: AsyncIterator[Q]) -> R:
    """Writes the requests at the server's pace and returns its answer.

    A server may refuse before it has read everything: then `requests` is no longer read. Raises AioRpcError with the
    server's own status; an error of `requests` cancels the call and is raised.
    """
    # A write that a refusal interrupts fails as INTERNAL, a moment before or after the refusal is known, and the later
    # of the two hides the other. So the first is noted when it comes.
    told: list[_Told] = []
    call.add_done_callback(lambda call: told.append(_status(call)))
    try:
        async for request in requests:
            await call.write(request)
        await call.done_writing()
        return await call
    except asyncio.InvalidStateError:
        # The call was over before this write; its status says how.
        return await call
    except grpc.aio.AioRpcError as error:
        code, details, trailing = await _refusal(call, told)
        raise grpc.aio.AioRpcError(code, error.initial_metadata(), trailing, details=details) from error
    finally:
        call.cancel()


async def _refusal(call: grpc.aio.StreamUnaryCall[Q, R], told: list[_Told]) -> _Told:
    """The first status unless that is INTERNAL, else the one that replaces it."""
    for _ in range(_LATE_CHECKS):
        for status in (*told, _status(call)):
            if status[0] != grpc.StatusCode.INTERNAL:
                return status
        await asyncio.sleep(_CHECK_S)
    return _status(call)


def _status(call: grpc.aio.StreamUnaryCall[Q, R]) -> _Told:
    """Of a call that is over."""
    return _known(call.code()), _known(call.details()), _known(call.trailing_metadata())


def _known(value: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        value.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    value.close()
    raise RuntimeError("a call that has ended does not know its status")
