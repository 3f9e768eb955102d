"""How often something happens. Pure: the caller brings the clock."""

from __future__ import annotations

_WINDOW_S = 0.5


class Rate:
    """Events per second, of the last window of half a second that is over."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self._count = 0
        self._since = float("-inf")

    def count(self, now: float) -> None:
        """Notes one event at `now`, in seconds."""
        self._count += 1
        span = now - self._since
        if span >= _WINDOW_S:
            # After a pause nothing is known of the rate.
            self.per_second = self._count / span if span < 4 * _WINDOW_S else 0.0
            self._count, self._since = 0, now
