"""A unit's way through a batch API, stage by stage. Each begins from the record, whichever evaluator wrote it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import Any

from services.bus import BatchRecord, BatchStage, ProviderBatches
from services.evaluator.items.task import Item
from services.evaluator.provider_batches.base import Batch, GoneError, Line, Tools, is_unclear, request
from services.evaluator.provider_batches.patience import Patience
from services.evaluator.provider_batches.publishing import publish
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.stored.responses import Identify
from services.evaluator.storing import until_stored
from services.evaluator.units.unit_loader import Loaded
from services.evaluator.units.units_in_hand import FaultError, Held

log = logging.getLogger(__name__)

_MOST_TRIES = 6
_TAKEN_OVER_S = 900.0
"""Longer than an upload and the call after it may take: an evaluator that still holds the unit is dead."""
_LOOK_AGAIN_S = 2.0
_SLOWER = 1.4
_MOST_FULL_S = 3600.0


class UnitBatch:
    """One unit in hand."""

    def __init__(self, tools: Tools, held: Held, keeper: UnitRecord) -> None:
        self._tools = tools
        self._held = held
        self._keeper = keeper
        self._patience = Patience(held, tools.settings.outage_s, tools.settings.batch_most_poll_s)
        self._identify: Identify = tools.answers.identity(held.unit)

    async def run(self) -> None:
        """Returns once every answer is stored. Raises FaultError to fail the job."""
        while True:
            match self._keeper.record.stage:
                case BatchStage.WRITING:
                    await self._send()
                case BatchStage.SENDING:
                    await self._look_for()
                case BatchStage.WAITING:
                    await self._wait()
                case BatchStage.READING:
                    await self._read()
                case BatchStage.STORED:
                    return
                case BatchStage.CLOSED:
                    raise FaultError(
                        f"The batch of {self._held.label} was closed: its job seemed to have ended. Retry the job."
                    )

    # -- sending -----------------------------------------------------------------------------------------------

    async def _send(self) -> None:
        keeper, api, unit = self._keeper, self._tools.api, self._held.unit
        tries = keeper.record.tries + 1
        if tries > _MOST_TRIES:
            raise FaultError(
                f"The rows of {self._held.label} were prepared {_MOST_TRIES} times for {api.label}'s batch API, and "
                "the evaluator crashed each time. Check its log, then retry."
            )
        if not await keeper.write(BatchStage.WRITING, tries=tries):
            return await self._leave_to_others()
        lines = await self._lines()
        if not lines:
            # Every answer was already stored.
            await keeper.write(BatchStage.READING, rows=0)
            return None
        mark = keeper.record.mark
        prepared = await self._patience.call(lambda: api.upload(mark, lines), paid=False)
        if not await keeper.write(BatchStage.SENDING, rows=len(lines)):
            return await self._leave_to_others()
        try:
            batch_id = await api.create(unit.spec.model, mark, prepared)
        except ProviderError as error:
            if is_unclear(error):
                log.warning("%s: checking whether its batch has started: %s", self._held.label, error.message)
                return None
            # Refused: no batch has begun, and no evaluator has crashed.
            await keeper.write(BatchStage.WRITING, tries=0, words=error.message)
            return await self._patience.after(error, paid=False)
        await self._begun(batch_id, len(lines))
        return None

    async def _begun(self, batch_id: str, rows: int) -> None:
        self._patience.over()
        await self._keeper.write(BatchStage.WAITING, batch=batch_id, words="")
        log.info(
            "%s: %d rows are in %s's batch %s",
            self._held.label,
            rows,
            self._tools.api.label,
            batch_id,
            extra=self._held.logged,
        )

    async def _leave_to_others(self) -> None:
        """Another evaluator has the unit as well, and was faster. It continues; if it ends, this one takes over."""
        log.warning("another evaluator also has %s", self._held.label)
        seen, since = self._keeper.position, time.monotonic()
        while self._keeper.record.stage is BatchStage.WRITING and time.monotonic() - since < _TAKEN_OVER_S:
            await asyncio.sleep(_LOOK_AGAIN_S)
            await self._keeper.read()
            if self._keeper.position != seen:
                seen, since = self._keeper.position, time.monotonic()

    async def _lines(self) -> list[Line]:
        """Lines of the rows whose answers are not known."""
        loaded = await self._tools.loader.load(self._held.unit)
        known = await self._tools.answers.of(self._held, loaded, self._identify)
        lines: list[Line] = []
        for position, repeat, item in loaded.items:
            if position not in known.results:
                body, _ = await self._written(loaded, item, repeat)
                lines.append(Line(position, body))
        return lines

    async def _written(self, loaded: Loaded, item: Item, repeat: int) -> tuple[dict[str, object], str]:
        try:
            return await self._tools.api.written(request(self._held.unit, loaded, item, repeat))
        except ProviderError as error:
            raise FaultError(error.message, error.detail) from error

    async def _look_for(self) -> None:
        """A batch may have begun, and its id was not noted."""
        keeper, api = self._keeper, self._tools.api
        seen, since = keeper.position, time.monotonic()
        while keeper.position == seen:
            found = await self._patience.call(lambda: api.find(keeper.record.mark), paid=True)
            if found:
                for double in found[1:]:
                    await self._patience.call(partial(api.cancel, double), paid=True)
                return await self._begun(found[0], keeper.record.rows)
            if time.monotonic() - since >= self._tools.settings.batch_settle_s:
                await keeper.write(BatchStage.WRITING)
                return None
            await asyncio.sleep(min(_LOOK_AGAIN_S, self._tools.settings.batch_settle_s))
            await keeper.read()
        return None

    # -- waiting -----------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        keeper, settings = self._keeper, self._tools.settings
        pause = settings.batch_poll_s
        while True:
            batch = await self._state()
            if batch.ended:
                break
            told = (keeper.record.done, keeper.record.failed)
            if told != (batch.done, batch.failed) and not await keeper.write(
                BatchStage.WAITING, done=batch.done, failed=batch.failed
            ):
                return
            await asyncio.sleep(pause)
            pause = min(pause * _SLOWER, settings.batch_most_poll_s)
        if batch.refused:
            await self._refused(batch)
        else:
            await keeper.write(BatchStage.READING, done=batch.done, failed=batch.failed)

    async def _state(self) -> Batch:
        batch_id = self._keeper.record.batch
        try:
            return await self._patience.call(lambda: self._tools.api.state(batch_id), paid=True)
        except GoneError as error:
            raise FaultError(f"{error.message} Retry the job: its rows are sent again.") from error

    async def _refused(self, batch: Batch) -> None:
        keeper, label = self._keeper, self._tools.api.label
        if not batch.full:
            raise FaultError(f"{label} did not start the batch: {batch.refused}. Correct the cause, then retry.")
        rounds = keeper.record.rounds + 1
        log.warning("%s waits: %s: %s", self._held.label, label, batch.refused, extra=self._held.logged)
        wait = min(self._tools.settings.batch_most_poll_s * 2 ** min(rounds - 1, 10), _MOST_FULL_S)
        words = f"{label} does not have room for the batch yet: {batch.refused}"
        mark = mark_of(*self._held.key, rounds)
        if await keeper.write(
            BatchStage.WRITING, rounds=rounds, mark=mark, batch="", tries=0, done=0, failed=0, words=words
        ):
            await asyncio.sleep(wait)

    # -- reading -----------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        keeper, api = self._keeper, self._tools.api
        passes = keeper.record.passes + 1
        if passes > _MOST_TRIES:
            raise FaultError(
                f"{api.label}'s answers to {self._held.label} were read {_MOST_TRIES} times, and the evaluator "
                "crashed each time. Check its log, then retry."
            )
        if not await keeper.write(BatchStage.READING, passes=passes):
            return
        batch = await self._state() if keeper.record.batch else None
        # The rest takes seconds: an orderly stop waits for it.
        self._held.started = True
        loaded = await self._tools.loader.load(self._held.unit)
        await publish(self._tools, self._held, loaded, self._identify, batch, passes, self._patience)
        await keeper.write(BatchStage.STORED)


class UnitRecord:
    """`record` is the newest that is known here. Writes that follow another evaluator's are refused."""

    def __init__(self, batches: ProviderBatches, record: BatchRecord, position: int, evaluator: str) -> None:
        self.record = record
        self.position = position
        self._batches = batches
        self._evaluator = evaluator

    @classmethod
    async def of(cls, batches: ProviderBatches, held: Held, endpoint: str, label: str, evaluator: str) -> UnitRecord:
        """The unit's record; a new one, not yet written, where there is none."""
        unit = held.unit
        fresh = BatchRecord(unit.job_id, unit.attempt, unit.unit, endpoint, mark_of(*held.key, 0), label=label)
        keeper = cls(batches, fresh, 0, evaluator)
        await keeper.read()
        return keeper

    async def read(self) -> None:
        """Reads what other evaluators have written."""
        mine = self.record
        found, self.position = await until_stored(
            lambda: self._batches.get(mine.job_id, mine.attempt, mine.unit), f"the record of batch {mine.key}"
        )
        self.record = found or mine

    async def write(self, stage: BatchStage, **changes: Any) -> bool:
        """False when another evaluator has written meanwhile; then `record` is that one's."""
        wanted = replace(self.record, stage=stage, evaluator=self._evaluator, written_at=time.time(), **changes)
        position = await until_stored(
            lambda: self._batches.write(wanted, self.position), f"the record of batch {wanted.key}"
        )
        if position is None:
            await self.read()
            # Unless it is our own write, whose acknowledgement was lost.
            return self.record == wanted
        self.record, self.position = wanted, position
        return True


def mark_of(job_id: str, attempt: int, unit: int, rounds: int) -> str:
    """The mark by which the provider's batch is found, unique to the unit, attempt and installation."""
    return f"touchstone-{job_id}-{attempt}-{unit}-{rounds}"
