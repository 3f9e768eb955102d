"""The calls that this evaluator accepts, for all of its endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.bus import MOST_CALL_BYTES, Bus, CallSessions, Outbox, serve_calls
from services.evaluator.calls.maker import CallMaker
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.stored.responses import BudgetStore
from touchstone.v1.call_pb2 import Call

_MOST_OPEN = 500


class CallServer:
    """Accepts calls while `run` runs."""

    def __init__(
        self,
        bus: Bus,
        endpoints: Sequence[tuple[EndpointWorker, EndpointListing]],
        evaluator: str,
        budgets: BudgetStore | None,
    ) -> None:
        self._makers = {
            worker.endpoint.name: CallMaker(bus, worker, listing, evaluator, budgets) for worker, listing in endpoints
        }
        self._sessions = CallSessions(bus, self._make, _MOST_OPEN, MOST_CALL_BYTES)

    async def run(self) -> None:
        """Until cancelled; calls under way continue, and others get the next ones."""
        try:
            await serve_calls(self._sessions, self._makers)
        finally:
            await asyncio.shield(self._sessions.refuse_further())

    async def drain(self, grace_s: float) -> None:
        """Ends calls under way after `grace_s`."""
        await self._sessions.end(grace_s)
        for maker in self._makers.values():
            await maker.stored()

    async def _make(self, call: Call, body: bytes, outbox: Outbox) -> None:
        await self._makers[call.endpoint].make(call, body, outbox)
