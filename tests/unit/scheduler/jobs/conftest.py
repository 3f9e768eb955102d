"""A scheduler with a model that has prices."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.scheduler.fakes import World, evaluator
from tests.unit.scheduler.jobs.priced import priced


@pytest.fixture
async def priced_world() -> AsyncIterator[World]:
    made = World()
    announced = evaluator()
    announced.endpoints[0].models[0].CopyFrom(priced())
    made.fleet.hear(announced, made.time)
    await made.start()
    yield made
    await made.stop()
