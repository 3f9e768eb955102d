"""A scheduler that leads no longer changes nothing."""

from __future__ import annotations

import pytest

from services.scheduler.ports import Change, LeadershipLostError
from tests.unit.scheduler.fakes import ALICE, World


async def test_a_stale_leader_stops_and_tells_nobody(world: World) -> None:
    world.store.fenced = True
    with pytest.raises(Exception, match="fenced"):
        await world.create()
    assert world.store.records == {}


async def test_nothing_is_stored_after_a_write_that_failed(world: World) -> None:
    """The cancellation is in memory then; stored without its event, the trail would lack it for ever."""
    job_id = await world.create()
    before = dict(world.store.records)
    world.store.fenced = True
    with pytest.raises(LeadershipLostError):
        await world.desk.cancel(ALICE, job_id)
    world.store.fenced = False
    with pytest.raises(LeadershipLostError):
        await world.registry.save([Change(world.registry.jobs[job_id])])
    assert world.store.records == before


async def test_a_change_after_the_leadership_is_refused_and_not_given_up(world: World) -> None:
    """A cancelled wait would leave its caller without any status."""
    job_id = await world.create()
    await world.stop()
    with pytest.raises(LeadershipLostError):
        await world.desk.cancel(ALICE, job_id)
