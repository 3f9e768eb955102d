"""The evaluator is killed once at a point of a unit's way through a batch API: wherever a file of that name lies in the
folder that TOUCHSTONE_CRASH_AT names."""

from __future__ import annotations

import sys
from pathlib import Path

if "services.evaluator" in sys.orig_argv:
    root = Path(__file__).parents[4]
    sys.path[:0] = [str(root), str(root / "protos" / "gen")]

    import os
    import signal

    from services.bus import BatchStage
    from services.evaluator.provider_batches.base import Batch
    from services.evaluator.provider_batches.stages import UnitBatch
    from services.evaluator.units.packer import MOST_ITEMS, Packer
    from touchstone.v1.item_result_pb2 import ItemResult

    points = Path(os.environ["TOUCHSTONE_CRASH_AT"])

    def crash(point: str) -> None:
        if (points / point).exists():
            (points / point).unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    begun, state, take = UnitBatch._begun, UnitBatch._state, Packer._take
    messages: dict[int, int] = {}

    async def begun_unnoted(self: UnitBatch, batch_id: str, rows: int) -> None:
        crash("begun")
        await begun(self, batch_id, rows)

    async def state_unheard(self: UnitBatch) -> Batch:
        found = await state(self)
        if self._keeper.record.stage is BatchStage.WAITING:
            crash("waiting")
        return found

    def take_third(self: Packer) -> list[ItemResult]:
        taken = take(self)
        if len(taken) == MOST_ITEMS:
            messages[id(self)] = messages.get(id(self), 0) + 1
            if messages[id(self)] == 3:
                # Two messages are stored by now, and counted.
                crash("publishing")
        return taken

    UnitBatch._begun = begun_unnoted  # type: ignore[method-assign]
    UnitBatch._state = state_unheard  # type: ignore[method-assign]
    Packer._take = take_third  # type: ignore[method-assign]
