"""Whether a service is silent or only slow: the first is told soon, the second is waited for."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

_CONNECT_S = 0.3


class SilentError(Exception):
    """Nothing was heard of the service."""


class Line:
    """The channel to one service. It is silent when no call gets an answer for `silence_s`, and neither does a
    question for its health."""

    def __init__(self, channel: grpc.aio.Channel, silence_s: float) -> None:
        self.channel = channel
        self._silence_s = silence_s
        self._heard = -silence_s
        self._looking: asyncio.Task[bool] | None = None

    async def answer(self, call: grpc.aio.UnaryUnaryCall[Q, R], *, hurry: bool = False) -> R:
        """The call's answer. Raises AioRpcError, and SilentError, which ends the call. With `hurry` a service without a
        connection is silent at once."""
        waiting = asyncio.ensure_future(_awaited(call))
        try:
            if hurry and not (await asyncio.wait((waiting,), timeout=_CONNECT_S))[0] and not self._connected:
                raise SilentError
            while not (await asyncio.wait((waiting,), timeout=self._silence_s))[0]:
                if not await self._can_be_heard() and not waiting.done():
                    raise SilentError
            response = await waiting
        except grpc.aio.AioRpcError as error:
            if answered(error):
                self._heard = time.monotonic()
            raise
        finally:
            waiting.cancel()
        self._heard = time.monotonic()
        return response

    async def serving(self, timeout_s: float) -> bool:
        """Whether the service says so."""
        stub = health_pb2_grpc.HealthStub(self.channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return False
        self._heard = time.monotonic()
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    @property
    def _connected(self) -> bool:
        return bool(self.channel.get_state() == grpc.ChannelConnectivity.READY)

    async def _can_be_heard(self) -> bool:
        if time.monotonic() - self._heard < self._silence_s:
            return True
        if not self._connected:
            return False
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.serving(self._silence_s))
        await asyncio.shield(self._looking)
        return time.monotonic() - self._heard < self._silence_s


def answered(error: grpc.aio.AioRpcError) -> bool:
    """Whether the service itself says so, perhaps of something that it needs: its own errors come with details."""
    return any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata() or ())


async def _awaited(call: grpc.aio.UnaryUnaryCall[Q, R]) -> R:
    try:
        return await call
    finally:
        call.cancel()
