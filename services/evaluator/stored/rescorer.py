"""Runs units of re-scores and imports: stored answers, the present scorer, no call. Every evaluator does this."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial

from nats.aio.msg import Msg

from services.bus import STORED_ENDPOINT, Bus
from services.errors import TouchstoneError
from services.evaluator import item_result
from services.evaluator.datasets.task import AnyTask
from services.evaluator.imports import item_texts, matching
from services.evaluator.imports.store import ImportStore
from services.evaluator.items.task import Item
from services.evaluator.settings import Settings
from services.evaluator.stored.responses import KnownAnswers
from services.evaluator.units.packer import Packer
from services.evaluator.units.puller import Puller
from services.evaluator.units.unit_loader import Loaded, Loader
from services.evaluator.units.units_in_hand import FaultError, Hand, Held
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.results_service_pb2 import ImportedAnswer

_UNITS_AT_ONCE = 4
"""Asking the store for one unit's answers takes longer than scoring them."""

_ABSENT = "The log has no answer for it."


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
        """Runs until cancelled; units in hand continue."""
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
            taken = await results(self._imports, import_id, unit.task, loaded)
            known.results = taken | known.results

        packer = Packer.of(held, len(loaded.items), self._bus, self._settings.name)
        for position, repeat, item in loaded.items:
            found = known.results.get(position)
            if found is None:
                why = known.unusable.get(position, "It has no stored answer.")
                source = unit.spec.reuse.job_id
                reason = f"{why} Re-run the failed items of job {source}, or start a new job."
                found = item_result.failed(loaded.task, item, position, repeat, reason, 0)
            packer.add(found)
        await packer.run()


def _no_identity(item: Item, repeat: int) -> str:
    """A re-score finds answers by position; each keeps its original identity."""
    return ""


async def results(store: ImportStore, import_id: str, task: str, loaded: Loaded) -> dict[int, ItemResult]:
    """Results by position, one for every item: an answer that is missing, or belongs to another row, becomes an error
    with the reason.

    Raises FaultError when the import no longer exists.
    """
    places: defaultdict[int, dict[int, tuple[int, Item]]] = defaultdict(dict)
    for place, repeat, item in loaded.items:
        places[repeat][item.index] = (place, item)
    found: dict[int, ItemResult] = {}
    for repeat, items in places.items():
        try:
            numbers = {loaded.found.answers[row] if loaded.found else row: row for row in items}
            answers = await store.answers(import_id, task, sorted(numbers), repeat)
        except TouchstoneError as error:
            raise FaultError(error.message) from error
        given = {numbers[answer.item]: answer for answer in answers}
        found.update(await item_result.called(loaded.task, partial(_scored, loaded, repeat, items, given)))
    return found


def _scored(
    loaded: Loaded, repeat: int, items: dict[int, tuple[int, Item]], given: dict[int, ImportedAnswer]
) -> dict[int, ItemResult]:
    make = _found_result if loaded.found else _result
    found: dict[int, ItemResult] = {}
    for index, (place, item) in items.items():
        try:
            found[place] = make(loaded.task, item, place, repeat, given.get(index))
        except ValueError as error:
            found[place] = item_result.failed(loaded.task, item, place, repeat, str(error), 0)
    return found


def _result(task: AnyTask, item: Item, place: int, repeat: int, answer: ImportedAnswer | None) -> ItemResult:
    """Raises ValueError with the reason why there is none."""
    if answer is None:
        raise ValueError(_ABSENT)
    if why := answer.error or matching.disagreement(item, answer):
        raise ValueError(why)
    response = matching.response(item, answer)
    prompt_hash = item.prompt_hash if matching.asked_as_we_do(item, answer) else matching.prompt_hash(answer)
    return item_result.imported(task, item, place, repeat, response, answer.prompt, prompt_hash)


def _found_result(task: AnyTask, item: Item, place: int, repeat: int, answer: ImportedAnswer | None) -> ItemResult:
    """As `_result`, for an answer that was found by what it says about its item."""
    if answer is None:
        raise ValueError(_ABSENT)
    if why := answer.error or item_texts.contradiction(task, item, answer):
        raise ValueError(why)
    prompt = answer.prompt or item_texts.shown_prompt(item)
    prompt_hash = item.prompt_hash if item_texts.asked_as_we_do(item, answer) else matching.prompt_hash(answer)
    return item_result.imported(task, item, place, repeat, matching.response(item, answer), prompt, prompt_hash)
