"""How fast one endpoint may be called: its rate limit, and what it asked for when it was called too often."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """Spaces calls evenly at `requests_per_minute` over all live evaluators; 0 means no limit of our own."""

    def __init__(self, requests_per_minute: int) -> None:
        self.requests_per_minute = requests_per_minute
        self._evaluators = 1
        self._next_call = 0.0
        self._limited_until = 0.0

    def share_with(self, evaluators: int) -> None:
        """Divides the limit by the number of live evaluators that serve the endpoint."""
        self._evaluators = max(1, evaluators)

    def limit(self, delay_s: float) -> None:
        """The endpoint asked for a pause: no slot calls it before."""
        self._limited_until = max(self._limited_until, time.monotonic() + delay_s)

    @property
    def limited_s(self) -> float:
        """Seconds until the next call may go out after a rate limit; 0 when not limited."""
        return max(0.0, self._limited_until - time.monotonic())

    async def turn(self) -> None:
        """Returns when a call may be sent."""
        await self._pause()
        if self.requests_per_minute:
            at = max(time.monotonic(), self._next_call)
            self._next_call = at + 60 * self._evaluators / self.requests_per_minute
            await asyncio.sleep(at - time.monotonic())
            await self._pause()

    async def _pause(self) -> None:
        left = self.limited_s
        while left > 0:  # A further refusal may have made the pause longer meanwhile.
            await asyncio.sleep(left)
            left = self.limited_s
