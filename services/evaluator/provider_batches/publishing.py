"""Answers of an ended batch as results of a unit: every row once, answers before errors."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from services.evaluator import item_result
from services.evaluator.items.task import Item
from services.evaluator.provider_batches.base import Answer, Batch, Tools, request
from services.evaluator.provider_batches.patience import Patience
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.stored.responses import Identify
from services.evaluator.units.packer import MOST_ITEMS, Packer
from services.evaluator.units.unit_loader import Loaded
from services.evaluator.units.units_in_hand import Held

log = logging.getLogger(__name__)

_MOST_WAITING = 8 * MOST_ITEMS
_LOST = "Its stored answer was not found again, and the batch did not include it. A retry asks for it."


class _Reader:
    """Takes a batch's answers as they come, in any order, with repeats."""

    def __init__(self, tools: Tools, held: Held, loaded: Loaded, identify: Identify, packer: Packer) -> None:
        self._tools = tools
        self._held = held
        self._loaded = loaded
        self._identify = identify
        self._packer = packer
        self.left: dict[int, tuple[int, Item]] = {place: (repeat, item) for place, repeat, item in loaded.items}
        self.errors: dict[int, tuple[str, int]] = {}
        """Why there is no answer, and how many calls were made: 0 for a line that never ran."""

    async def take(self, answer: Answer) -> None:
        if answer.position not in self.left:
            return
        repeat, item = self.left[answer.position]
        if answer.reply is None:
            self.errors[answer.position] = answer.error, 0
            return
        api, unit = self._tools.api, self._held.unit
        try:
            _, parameters = await api.written(request(unit, self._loaded, item, repeat))
            response = api.read(answer.reply, unit.spec.model, parameters, prices.of_unit(unit))
        except ProviderError as error:
            self.errors[answer.position] = error.message, 1
            return
        self._tools.doubts.tell(self._held, response.doubtful)
        del self.left[answer.position]
        self.errors.pop(answer.position, None)
        identity = self._identify(item, repeat)
        task = self._loaded.task
        answered = partial(item_result.answered, task, item, answer.position, repeat, response, 1, identity)
        self._packer.add(await item_result.called(task, answered))
        await self._packer.room(_MOST_WAITING)


async def publish(
    tools: Tools,
    held: Held,
    loaded: Loaded,
    identify: Identify,
    batch: Batch | None,
    passes: int,
    patience: Patience,
) -> None:
    """Returns once a result of every row is stored. `batch` is None if nothing had to be sent. `passes` is the delivery
    number in the messages, so that messages of an earlier, interrupted reading are not counted in addition."""
    packer = Packer.of(held, len(loaded.items), tools.bus, tools.settings.name, delivery=passes)
    reader = _Reader(tools, held, loaded, identify, packer)
    storing = asyncio.create_task(packer.run())
    reading = asyncio.create_task(_read(tools, held, loaded, identify, batch, reader, packer, patience))
    both = {storing, reading}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)
    for task in (reading, storing):
        if not task.cancelled():
            task.result()


async def _read(
    tools: Tools,
    held: Held,
    loaded: Loaded,
    identify: Identify,
    batch: Batch | None,
    reader: _Reader,
    packer: Packer,
    patience: Patience,
) -> None:
    if batch is not None:
        await patience.call(lambda: tools.api.answers(batch, reader.take), paid=True)
    reuse = held.unit.spec.reuse
    if reader.left and (reuse.job_id or reuse.any_job):
        await _add_known(tools, held, loaded, identify, reader, packer)
    why = batch.missing if batch is not None else _LOST
    for position, (repeat, item) in reader.left.items():
        message, calls = reader.errors.get(position, (why, 0))
        packer.add(item_result.failed(loaded.task, item, position, repeat, message, calls))
        await packer.room(_MOST_WAITING)


async def _add_known(
    tools: Tools, held: Held, loaded: Loaded, identify: Identify, reader: _Reader, packer: Packer
) -> None:
    rest = Loaded(loaded.task, [(place, repeat, item) for place, (repeat, item) in reader.left.items()])
    known = await tools.answers.of(held, rest, identify)
    for position, stored in known.results.items():
        if reader.left.pop(position, None) is not None:
            packer.add(stored)
            await packer.room(_MOST_WAITING)
