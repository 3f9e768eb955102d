"""What waits for an endpoint's slots: items of jobs, and calls that users make through the gateway."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from services.evaluator.datasets.task import AnyTask
from services.evaluator.items.task import Item
from services.evaluator.pacing.retry import Tries, Trouble
from services.evaluator.pacing.shares import Flow
from services.evaluator.stored.responses import Identify
from services.evaluator.units.packer import Begun, Packer
from services.evaluator.units.units_in_hand import Held

_GUESTS = "calls/"
"""In the place of a job's id, before the model: calls of a model that must wait do not hold others back."""


@dataclass(slots=True, eq=False)
class UnitCalls:
    """What the calls of one unit share."""

    held: Held
    flow: Flow
    task: AnyTask
    packer: Packer
    begun: Begun | None
    trouble: Trouble
    identify: Identify


@dataclass(slots=True, eq=False)
class ItemCall:
    """One item waiting for a slot or in one."""

    unit: UnitCalls
    position: int
    repeat: int
    item: Item
    tries: Tries = field(default_factory=Tries)

    @property
    def model(self) -> str:
        return self.unit.held.unit.spec.model


@dataclass(slots=True, eq=False)
class Guest:
    """A call that belongs to no job. Its maker waits for `admitted`, and sets `ended`."""

    owner: str
    model: str
    admitted: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    unit: None = None

    @property
    def flow(self) -> Flow:
        return Flow(self.owner, _GUESTS + self.model)

    async def hold(self) -> None:
        """Holds a slot until the call has ended."""
        self.admitted.set()
        await self.ended.wait()
