"""How hard one endpoint may be called from this process, as its own answers tell. Pure: callers bring the clock."""

from __future__ import annotations

import math


class Pace:
    """A pause that the endpoint asked for, and how many calls it is sent at once.

    A refusal (status 429) halves the calls at once; each window of as many successes allows one more, up to
    `concurrency` (additive increase, multiplicative decrease: Chiu and Jain, 1989). Times are monotonic seconds.
    """

    def __init__(self, concurrency: int) -> None:
        self.slots = concurrency
        """Calls at once, 1 to `concurrency`."""
        self._concurrency = concurrency
        self._successes = 0
        self._halved_at = float("-inf")
        self._limited_until = float("-inf")
        self.refused_at = float("-inf")
        """When a call was refused last."""

    def refused(self, sent: float, now: float) -> None:
        """A call sent at `sent` was refused. Those that were under way at the last halving do not count."""
        self._successes = 0
        self.refused_at = now
        if sent >= self._halved_at:
            self.slots = max(1, self.slots // 2)
            self._halved_at = now

    def succeeded(self) -> None:
        if self.slots == self._concurrency:
            return
        self._successes += 1
        if self._successes >= self.slots:
            self.slots += 1
            self._successes = 0

    def pause(self, delay_s: float, now: float) -> None:
        """The endpoint asked for a pause: no slot calls it before."""
        self._limited_until = max(self._limited_until, now + delay_s)

    def limited_s(self, now: float) -> float:
        """Seconds until the next call may go out after a refusal; 0 when not limited."""
        return max(0.0, self._limited_until - now)

    def detail(self, now: float) -> str:
        """What the endpoint's announcement says; empty when nothing is held back."""
        parts = []
        if self.limited_s(now) > 0:
            parts.append(f"next call in {math.ceil(self.limited_s(now))} s")
        if self.slots < self._concurrency:
            parts.append(f"{self.slots} of {self._concurrency} calls at once")
        return f"rate limit, {', then '.join(parts)}" if parts else ""
