"""Pulls units of one endpoint from NATS: as many at a time as there is room for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.bus import Bus
from services.evaluator.storing import TRANSIENT

log = logging.getLogger(__name__)

_PULL_S = 5.0
"""A pull request does not survive a restart of NATS, so each waits at most this long."""
_LOOK_S = 1.0
_LAST_S = 0.1
_MOST = 64
_OVER = frozenset({"404", "408", "409"})
"""Statuses that end a pull request: no messages, its time is over, or the consumer or server went away."""


class Puller:
    """Asks for units while `room` is set, `wanted` at a time, and hands each over as it comes. Survives restarts of
    NATS.

    Pull requests are written here, not by nats-py's `fetch`, which takes one turn after the other: with hundreds of
    calls at once, slots stood empty while their units came one by one.
    """

    def __init__(
        self, bus: Bus, endpoint: str, ack_wait_s: float, room: asyncio.Event, wanted: Callable[[], int] = lambda: 1
    ) -> None:
        self._bus = bus
        self._endpoint = endpoint
        self._ack_wait_s = ack_wait_s
        self._room = room
        self._wanted = wanted
        self._receive: Callable[[Msg], None] | None = None
        self._subscription: Subscription | None = None
        self._asked = 0
        """Units that were requested and have not arrived."""
        self._asked_until = 0.0
        self._reconnects = 0
        self._moved = asyncio.Event()

    async def open(self) -> None:
        """Creates the consumer. Raises NATS's errors."""
        self._subscription = await self._bus.work_inbox(self._endpoint, self._ack_wait_s, self._came)
        self._asked = 0
        self._reconnects = self._bus.client.stats["reconnects"]

    async def run(self, receive: Callable[[Msg], None]) -> None:
        """Runs until cancelled; then gives back what was delivered meanwhile."""
        self._receive = receive
        try:
            with self._bus.telling_of_reconnects(self._moved.set):
                await self._run()
        finally:
            self._receive = None
            await asyncio.shield(self._end())

    async def _run(self) -> None:
        while True:
            await self._room.wait()
            self._moved.clear()
            try:
                await self._ask()
            except TRANSIENT as error:
                log.warning("cannot pull units of %s (%s); trying again", self._endpoint, error or type(error))
                await self._close()
                await asyncio.sleep(0.25)
                continue
            # A reconnect also moves it: requests broke with the connection.
            left = self._asked_until - asyncio.get_running_loop().time() if self._asked else 0.0
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, left) + _LOOK_S):
                    await self._moved.wait()

    async def _ask(self) -> None:
        if self._subscription is None:
            await self.open()
        assert self._subscription is not None
        now = asyncio.get_running_loop().time()
        reconnects = self._bus.client.stats["reconnects"]
        if now > self._asked_until + _LOOK_S or reconnects != self._reconnects:
            self._asked, self._reconnects = 0, reconnects
        missing = min(_MOST, self._wanted()) - self._asked
        if missing > 0:
            await self._bus.pull_work(self._endpoint, self._subscription.subject, missing, _PULL_S)
            self._asked += missing
            self._asked_until = now + _PULL_S

    async def _came(self, msg: Msg) -> None:
        status = (msg.headers or {}).get("Status")
        self._moved.set()
        # A stored message may have any headers; messages from the server itself have no reply subject.
        if msg.reply:
            self._asked = max(0, self._asked - 1)
            if self._receive is not None:
                self._receive(msg)
            else:
                with suppress(*TRANSIENT):
                    await msg.nak()
        elif status in _OVER and "Nats-Pending-Messages" in (msg.headers or {}):
            self._asked = max(0, self._asked - int((msg.headers or {})["Nats-Pending-Messages"]))
        else:
            log.warning(
                "cannot pull units of %s (%s %s)", self._endpoint, status, (msg.headers or {}).get("Description")
            )
            await self._close()

    async def _end(self) -> None:
        """The last requested units may be on their way: wait a moment, as they would otherwise come again only late."""
        if self._asked and self._bus.connected:
            await asyncio.sleep(_LAST_S)
        await self._close()

    async def _close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(*TRANSIENT):
                await subscription.unsubscribe()
