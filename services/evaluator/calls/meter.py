"""What a call took, stored before it begins and again when it has ended: a call of a lost evaluator is not lost."""

from __future__ import annotations

import asyncio
import time

from services.bus import Bus
from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.items.task import Response
from services.evaluator.storing import TRANSIENT, until_stored
from touchstone.v1.call_pb2 import Call

_BEGIN_S = 5.0
_MOST_ERROR = 1000


class Meter:
    """Of one call."""

    def __init__(self, bus: Bus, call: Call, evaluator: str) -> None:
        self._bus = bus
        self._call = call
        self._call.evaluator = evaluator
        self._call.started_at.GetCurrentTime()
        self._began = time.monotonic()

    async def begin(self) -> None:
        """Returns once it is stored that the call begins. Raises RefusedCallError while that is not possible."""
        self._call.started_at.GetCurrentTime()
        self._began = time.monotonic()
        try:
            async with asyncio.timeout(_BEGIN_S):
                await self._bus.publish_usage(self._call)
        except TRANSIENT as error:
            raise RefusedCallError(
                503, "What the call takes cannot be stored now, so it is not made. Try again in a moment."
            ) from error

    def took(self, response: Response) -> None:
        """Notes what the answer took, whatever becomes of it on its way to the client."""
        call = self._call
        call.ttft_ms, call.served_model = response.ttft_ms, response.served_model
        call.reasoning_tokens = response.reasoning_tokens
        if response.input_tokens is not None:
            call.input_tokens = response.input_tokens
        if response.output_tokens is not None:
            call.output_tokens = response.output_tokens
        if response.cost_usd is not None:
            call.cost_usd = response.cost_usd

    async def end(self, outcome: Call.Outcome, status: int, error: str = "") -> None:
        """Returns once it is stored how the call ended, however long NATS is away."""
        call = self._call
        call.outcome, call.status, call.error = outcome, status, error[:_MOST_ERROR]
        call.latency_ms = (time.monotonic() - self._began) * 1000
        await until_stored(lambda: self._bus.publish_usage(call), "what a call took")
