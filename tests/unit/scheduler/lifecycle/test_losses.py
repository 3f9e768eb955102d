"""Evaluators that vanish: when that is noticed, and which jobs' logs tell of it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.bus import KIND_ITEMS, ResultHeaders
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.lifecycle.losses import tell_losses
from tests.unit.scheduler.fakes import World, evaluator
from touchstone.v1 import evaluator_pb2


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.fleet.hear(announced("e1", made.time), made.time)
    await made.start()
    yield made
    await made.stop()


def announced(
    name: str, now: float, *, started: float = 1.0, units: int = 0, draining: bool = False, endpoint: str = "stub"
) -> evaluator_pb2.Evaluator:
    made = evaluator(name, endpoint)
    made.started_at.CopyFrom(Timestamp(seconds=int(started)))
    made.announced_at.CopyFrom(Timestamp(seconds=int(now)))
    made.units_in_flight, made.draining = units, draining
    return made


def test_an_evaluator_is_lost_once_when_it_falls_silent() -> None:
    fleet = Fleet(absent_after_s=10)
    fleet.hear(announced("e1", 0), 0)
    assert fleet.losses(9) == []
    (loss,) = fleet.losses(11)
    assert (loss.evaluator.evaluator, loss.restarted) == ("e1", False)
    assert fleet.losses(12) == []
    fleet.hear(announced("e1", 13), 13)
    assert fleet.losses(14) == []
    assert len(fleet.losses(30)) == 1


def test_one_that_said_that_it_ends_is_not_lost() -> None:
    fleet = Fleet(absent_after_s=10)
    fleet.hear(announced("e1", 0), 0)
    fleet.hear(announced("e1", 5, draining=True), 5)
    assert fleet.losses(20) == []
    fleet.hear(announced("e1", 21, started=21), 21)
    assert fleet.losses(22) == []


def test_another_process_of_its_name_tells_at_once_that_one_is_lost() -> None:
    fleet = Fleet(absent_after_s=10)
    fleet.hear(announced("e1", 0, units=3), 0)
    fleet.hear(announced("e1", 1, started=1, units=3), 1)
    assert fleet.losses(2) == []
    fleet.hear(announced("e1", 2, started=2), 2)
    (loss,) = fleet.losses(3)
    assert (loss.restarted, loss.evaluator.units_in_flight) == (True, 3)
    assert fleet.losses(30) != [], "its successor may be lost in turn"


def begun(world: World, job: str, unit: int, by: str) -> None:
    world.work.position += 1
    headers = ResultHeaders(KIND_ITEMS, 1, items=1, evaluator=by)
    world.scheduler.on_items(job, unit, headers, world.work.position)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


async def test_the_job_whose_units_it_held_is_told_in_its_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    job, other = await world.create(), await world.create()
    for each in (job, other):
        await world.planned(each)
    begun(world, job, 0, "e1")
    begun(world, other, 0, "e2")
    world.time += 11
    tell_losses(world.registry)
    assert warnings(caplog) == [f"job {job}: evaluator e1 is silent; it had begun unit 0, and will run again"]
    assert caplog.records[-1].__dict__["job_id"] == job


async def test_units_that_nobody_has_reported_of_may_have_been_its_own(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    job = await world.create()
    await world.planned(job)
    world.time += 5
    world.fleet.hear(announced("e1", world.time, units=2), world.time)
    world.fleet.hear(announced("far", world.time, units=2, endpoint="elsewhere"), world.time)
    world.fleet.hear(announced("idle", world.time), world.time)
    world.time += 11
    tell_losses(world.registry)
    (told,) = warnings(caplog)
    assert "evaluator e1 is silent; some of its 2 units in hand may belong to this job" in told


async def test_time_tells_of_a_restarted_evaluator(world: World, caplog: pytest.LogCaptureFixture) -> None:
    job = await world.create()
    await world.planned(job)
    begun(world, job, 0, "e1")
    begun(world, job, 1, "e1")
    world.fleet.hear(announced("e1", world.time, started=2), world.time)
    await world.look()
    assert f"job {job}: evaluator e1 was restarted; it had begun units 0, 1, and will run again" in warnings(caplog)
