"""A control: this evaluator tells NATS and the scheduler that a unit is done before it has begun."""

from __future__ import annotations

import sys
from pathlib import Path

if "services.evaluator" in sys.orig_argv:
    root = Path(__file__).parents[4]
    sys.path[:0] = [str(root), str(root / "protos" / "gen")]

    from services.bus import PLAN_UNIT
    from services.evaluator.units.units_in_hand import Hand, Held, Run
    from touchstone.v1 import item_result_pb2

    guarded = Hand._guarded

    async def acknowledge_first(self: Hand, held: Held, run: Run) -> None:
        unit = held.unit
        if unit.unit != PLAN_UNIT:
            done = item_result_pb2.ItemResultBatch(
                job_id=unit.job_id, attempt=unit.attempt, unit=unit.unit, task=unit.task
            )
            await self._bus.publish_items(done, delivery=held.delivery, done=True)
            await self._bus.client.publish(held.msg.reply)
        await guarded(self, held, run)

    Hand._guarded = acknowledge_first  # type: ignore[method-assign]
