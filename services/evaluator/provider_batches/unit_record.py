"""A unit's record in the bucket, as one evaluator reads and updates it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from services.bus import BatchRecord, BatchStage, ProviderBatches
from services.evaluator.storing import until_stored
from services.evaluator.units.units_in_hand import Held


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
