"""Pulls units of one endpoint from NATS, one whenever there is room for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from services.bus import Bus
from services.evaluator.storing import TRANSIENT

log = logging.getLogger(__name__)

_FETCH_S = 2.0
"""A pull request does not survive a restart of NATS, so none waits longer than this."""


class Puller:
    """Fetches a unit while `room` is set and hands it over. Survives restarts of NATS."""

    def __init__(self, bus: Bus, endpoint: str, ack_wait_s: float, room: asyncio.Event) -> None:
        self._bus = bus
        self._endpoint = endpoint
        self._ack_wait_s = ack_wait_s
        self._room = room
        self._subscription: JetStreamContext.PullSubscription | None = None

    async def open(self) -> None:
        """Makes the consumer; raises NATS's errors."""
        self._subscription = await self._bus.work(self._endpoint, self._ack_wait_s)

    async def run(self, receive: Callable[[Msg], None]) -> None:
        """Until cancelled; then what was delivered meanwhile is given back."""
        try:
            while True:
                await self._room.wait()
                msg = await self._fetch()
                if msg is not None:
                    receive(msg)
        finally:
            await asyncio.shield(self._close())

    async def _fetch(self) -> Msg | None:
        try:
            if self._subscription is None:
                await self.open()
            assert self._subscription is not None
            return (await self._subscription.fetch(1, timeout=_FETCH_S))[0]
        except nats.errors.TimeoutError:
            return None
        except TRANSIENT as error:
            log.warning("units of %s cannot be pulled (%s); trying again", self._endpoint, str(error) or type(error))
            await self._close()
            await asyncio.sleep(0.25)
            return None

    async def _close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        with suppress(*TRANSIENT):
            while subscription.pending_msgs:
                for msg in await subscription.fetch(1, timeout=0.1):
                    await msg.nak()
        with suppress(*TRANSIENT):
            await subscription.unsubscribe()
