"""Runs units of re-scores and imports: stored answers, the present scorer, no call. Every evaluator does."""

from __future__ import annotations

import asyncio

from nats.aio.msg import Msg

from services.bus import STORED_ENDPOINT, Bus
from services.evaluator.imports import answers
from services.evaluator.imports.store import ImportStore
from services.evaluator.responses import KnownAnswers
from services.evaluator.settings import Settings
from services.evaluator.tasks.base import Item
from services.evaluator.units import result
from services.evaluator.units.hand import Hand, Held
from services.evaluator.units.load import Loader
from services.evaluator.units.packer import Packer
from services.evaluator.units.puller import Puller

_UNITS_AT_ONCE = 4
"""Asking the store for one unit's answers takes longer than scoring them."""


class Rescorer:
    """Pulls units of the reserved endpoint, a few at a time."""

    def __init__(
        self,
        bus: Bus,
        hand: Hand,
        loader: Loader,
        known: KnownAnswers,
        imports: ImportStore,
        settings: Settings,
    ) -> None:
        self._bus = bus
        self._hand = hand
        self._loader = loader
        self._known = known
        self._imports = imports
        self._settings = settings
        self._in_hand = 0
        self._room = asyncio.Event()
        self._room.set()
        self._puller = Puller(bus, STORED_ENDPOINT, settings.ack_wait_s, self._room)

    async def open(self) -> None:
        await self._puller.open()

    async def run(self) -> None:
        """Until cancelled; units in hand go on."""
        await self._puller.run(self._receive)

    def _receive(self, msg: Msg) -> None:
        if self._hand.take(STORED_ENDPOINT, msg, self._run, self._ended) is not None:
            self._in_hand += 1
            if self._in_hand >= _UNITS_AT_ONCE:
                self._room.clear()

    def _ended(self, held: Held) -> None:
        self._in_hand -= 1
        self._room.set()

    async def _run(self, held: Held) -> None:
        unit = held.unit
        loaded = await self._loader.load(unit)
        held.started = True
        known = await self._known.of(held, loaded, _no_identity)
        if import_id := unit.spec.reuse.import_id:
            taken = await answers.results(self._imports, import_id, unit.task, loaded)
            known.results = taken | known.results

        packer = Packer.of(held, len(loaded.items), self._bus, self._settings.name)
        for position, repeat, item in loaded.items:
            found = known.results.get(position)
            if found is None:
                why = known.unusable.get(position, "It has no stored answer.")
                source = unit.spec.reuse.job_id
                reason = f"{why} Run job {source}'s failed items again, or start a new job."
                found = result.failed(loaded.task, item, position, repeat, reason, 0)
            packer.add(found)
        await packer.run()


def _no_identity(item: Item, repeat: int) -> str:
    """A re-score finds answers by place; each keeps the identity that it was asked under."""
    return ""
