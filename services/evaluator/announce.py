"""Announces this evaluator in the EVALUATORS bucket: every two seconds, and at once when something changed."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress

from google.protobuf.timestamp_pb2 import Timestamp

import services
from services.bus import Bus
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.storing import TRANSIENT
from services.evaluator.units.units_in_hand import Hand
from touchstone.v1 import evaluator_pb2

log = logging.getLogger(__name__)

EVERY_S = 2.0


class Announcer:
    """Announces what this evaluator serves. `changed()` announces at once."""

    def __init__(
        self,
        name: str,
        bus: Bus,
        catalogue: Catalogue,
        hand: Hand,
        endpoints: Sequence[tuple[EndpointWorker, EndpointListing]],
        plugins: Sequence[evaluator_pb2.Plugin] = (),
    ) -> None:
        self._name = name
        self._bus = bus
        self._hand = hand
        self._endpoints = endpoints
        self._suites = catalogue.suites()
        self._plugins = plugins
        self._started_at = Timestamp()
        self._started_at.GetCurrentTime()
        self._wake = asyncio.Event()
        self._draining = False
        self.drain_requested = False
        """An admin drains this evaluator."""

    def changed(self) -> None:
        self._wake.set()

    async def run(self, announced: asyncio.Event) -> None:
        """Until cancelled; sets `announced` once the first announcement is stored."""
        while True:
            self._wake.clear()
            try:
                await self._bus.announce(self._evaluator())
                announced.set()
            except TRANSIENT as error:
                log.warning("cannot announce this evaluator (%s); trying again", str(error) or type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._wake.wait()

    async def drain(self) -> None:
        """Announces that no new units are taken. Tries once, and gives up soon when NATS is away."""
        self._draining = True
        self._wake.set()
        with suppress(*TRANSIENT):
            async with asyncio.timeout(2):
                await self._bus.announce(self._evaluator())

    def _evaluator(self) -> evaluator_pb2.Evaluator:
        evaluator = evaluator_pb2.Evaluator(
            evaluator=self._name,
            host=socket.gethostname(),
            software=services.__version__,
            started_at=self._started_at,
            endpoints=[listing.announcement(worker.slots_busy) for worker, listing in self._endpoints],
            suites=self._suites,
            units_in_flight=len(self._hand),
            draining=self._draining or self.drain_requested,
            drain_requested=self.drain_requested and not self._draining,
            plugins=self._plugins,
        )
        evaluator.announced_at.GetCurrentTime()
        return evaluator
