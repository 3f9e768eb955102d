"""A scheduler with an evaluator."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.scheduler.fakes import World, evaluator


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.fleet.hear(evaluator(), made.time)
    await made.start()
    yield made
    await made.stop()
