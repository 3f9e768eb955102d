"""Announces this evaluator in the EVALUATORS bucket: every two seconds, and at once when something changed."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Sequence
from contextlib import suppress

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

import services
from services.bus import EVALUATORS, Bus
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.hand import Hand
from services.evaluator.listing import EndpointListing
from services.evaluator.storing import TRANSIENT
from touchstone.v1 import evaluator_pb2

log = logging.getLogger(__name__)

EVERY_S = 2.0
LIVE_S = 10.0
"""An evaluator that was announced within this time counts as live."""


class Announcer:
    """Tells what this evaluator serves. `changed()` announces at once."""

    def __init__(
        self,
        name: str,
        bus: Bus,
        catalogue: Catalogue,
        hand: Hand,
        endpoints: Sequence[tuple[EndpointWorker, EndpointListing]],
    ) -> None:
        self._name = name
        self._bus = bus
        self._hand = hand
        self._endpoints = endpoints
        self._suites = catalogue.suites()
        self._started_at = Timestamp()
        self._started_at.GetCurrentTime()
        self._wake = asyncio.Event()
        self._draining = False

    def changed(self) -> None:
        self._wake.set()

    async def run(self, announced: asyncio.Event) -> None:
        """Until cancelled; sets `announced` once the first announcement is stored."""
        shared = 0.0
        while True:
            self._wake.clear()
            try:
                await self._bus.announce(self._evaluator())
                announced.set()
                if time.monotonic() - shared > LIVE_S:
                    await self._share_limits()
                    shared = time.monotonic()
            except TRANSIENT as error:
                log.warning("the evaluator is not announced (%s); trying again", str(error) or type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._wake.wait()

    async def drain(self) -> None:
        """Says that no new units are taken; once, and not for long when NATS is away."""
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
            draining=self._draining,
        )
        evaluator.announced_at.GetCurrentTime()
        return evaluator

    async def _share_limits(self) -> None:
        """A cluster-wide call rate is divided among the live evaluators that serve the endpoint."""
        limited = [worker for worker, _ in self._endpoints if worker.endpoint.requests_per_minute]
        if not limited:
            return
        counts: dict[str, int] = {}
        async for _, msg in self._bus.kv_all(EVALUATORS):
            with suppress(DecodeError):
                other = evaluator_pb2.Evaluator.FromString(msg.data)
                if not other.draining and time.time() - other.announced_at.ToSeconds() < LIVE_S:
                    for endpoint in other.endpoints:
                        counts[endpoint.endpoint] = counts.get(endpoint.endpoint, 0) + 1
        for worker in limited:
            worker.pace.share_with(counts.get(worker.endpoint.name, 1))
