"""Keeps one endpoint's calls within its limit over all evaluators: takes permits from the record in the LIMITS bucket.

A permit names the moment of one call. They are taken in bundles of a fraction of a second by compare-and-set, so a
crash loses no more than that, and while NATS is away only the permits in hand are used.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping

from services.bus import LIMITS, Bus
from services.evaluator.pacing.shares import AHEAD_S, Flow, Permit, Shares
from services.evaluator.storing import TRANSIENT

log = logging.getLogger(__name__)

_STALE_S = 1.0
"""A permit without a call for this long is dropped, or a burst would follow."""
_LEAST_S = 0.02
_RETRY_S = 0.25
_CLOCK_S = 60.0
_CONFLICTS = 20
_RESERVE_S = 0.1


class Limiter:
    """Permits of one endpoint. `due` is called when one is due; `next` then uses it."""

    def __init__(self, bus: Bus, endpoint: str, requests_per_minute: int, due: Callable[[], None]) -> None:
        self._bus = bus
        self._endpoint = endpoint
        self._requests_per_minute = requests_per_minute
        self._due = due
        self._permits: deque[Permit] = deque()
        """In order of time, by the monotonic clock."""
        self._wanted: Mapping[Flow, int] = {}
        self._free = 0
        self._asked = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._used = 0
        self._clock: tuple[float, float, int] | None = None
        """Offset of the server's clock to the monotonic one, when it was measured, and under which connection."""

    def want(self, waiting: Mapping[Flow, int], free: int) -> None:
        """Calls that wait now, by flow, and how many of them could go out at once."""
        self._wanted, self._free = waiting, free
        if waiting and free > len(self._permits):
            self._asked.set()

    def next(self, waiting: Mapping[Flow, int]) -> Flow | None:
        """Uses up a due permit and returns the flow whose call goes out; None without a due permit."""
        now = time.monotonic()
        while self._permits and self._permits[0].at < now - _STALE_S:
            self._permits.popleft()
        if not waiting or not self._permits or self._permits[0].at > now:
            return None
        self._used += 1
        flow = self._permits.popleft().flow
        # The flow it was taken for may have ended meanwhile.
        return flow if flow in waiting else next(iter(waiting))

    async def run(self) -> None:
        """Until cancelled."""
        before, used = time.monotonic(), 0
        while True:
            await self._asked.wait()
            now = time.monotonic()
            # Where calls end fast, a freed slot should find a permit: keep as many as are used in a moment.
            reserve = int((self._used - used) / max(now - before, _LEAST_S) * _RESERVE_S)
            before, used = now, self._used
            most = self._free + reserve - len(self._permits)
            if most <= 0 or not self._wanted:
                self._asked.clear()
                continue
            try:
                pause = await self._take(most)
            except TRANSIENT as error:
                log.warning("calls to %s are on hold: NATS failed (%s)", self._endpoint, error or type(error))
                pause = _RETRY_S
            self._rouse()
            await asyncio.sleep(pause * random.uniform(0.6, 1.0))

    async def _take(self, most: int) -> float:
        """Takes as many wanted permits as are available; returns the seconds after which to look again."""
        for _ in range(_CONFLICTS):
            offset = await self._offset()
            stored = await self._bus.kv_get(LIMITS, self._endpoint)
            shares = _decoded(stored.data or b"") if stored is not None else Shares()
            now = time.monotonic() + offset
            permits = shares.take(self._needs(), most, self._requests_per_minute, now)
            expected = int(stored.seq or 0) if stored is not None else 0
            if await self._bus.kv_update(LIMITS, self._endpoint, shares.encode(), expected) is not None:
                self._permits.extend(Permit(at - offset, flow) for at, flow in permits)
                # Not until the next free moment is near, as others may take it first.
                return max(_LEAST_S, min(shares.next - now, AHEAD_S / 2))
            await asyncio.sleep(random.uniform(0, 2 * _LEAST_S))
        return _LEAST_S

    def _needs(self) -> dict[Flow, int]:
        held: dict[Flow, int] = {}
        for permit in self._permits:
            held[permit.flow] = held.get(permit.flow, 0) + 1
        return {flow: max(0, waiting - held.get(flow, 0)) for flow, waiting in self._wanted.items()}

    async def _offset(self) -> float:
        now, connection = time.monotonic(), self._bus.client.stats["reconnects"]
        if self._clock is None or now - self._clock[1] > _CLOCK_S or self._clock[2] != connection:
            self._clock = (await self._bus.server_time() - time.monotonic(), now, connection)
        return self._clock[0]

    def _rouse(self) -> None:
        """Calls `due` now if a permit is due, and again when the next one is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = time.monotonic()
        if self._permits and self._permits[0].at <= now:
            self._due()
        coming = next((permit.at for permit in self._permits if permit.at > now), None)
        if coming is not None:
            self._timer = asyncio.get_running_loop().call_at(coming, self._rouse)


def _decoded(data: bytes) -> Shares:
    try:
        return Shares.decode(data)
    except (ValueError, KeyError, TypeError):
        log.exception("a record of shared limits cannot be read; starting a new one")
        return Shares()
