"""Spans of a job follow each other without gaps, for every way in which it may end."""

from __future__ import annotations

from typing import Any

import pytest

from services.scheduler.settings import Limits
from services.telemetry import traces
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan
from touchstone.v1 import job_pb2

Span = tuple[str, int, float, float, str]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[Span]:
    """Name, attempt, beginning, end and failure of each."""
    found: list[Span] = []

    def add(name: str, _: str, attempt: int, began_s: float, ended_s: float, *__: Any, **given: Any) -> None:
        found.append((name, attempt, round(began_s, 3), round(ended_s, 3), given.get("failed", "")))

    monkeypatch.setattr(traces, "on", lambda: True)
    monkeypatch.setattr(traces, "add", add)
    return found


async def begun(world: World) -> str:
    """A job that runs, five seconds in each step."""
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job_id = await world.create()
    world.time += 5
    await world.planned(job_id, plan(2, 2, ["one"]))
    world.time += 5
    return job_id


async def test_a_completed_job_has_a_span_for_each_step_and_one_for_all(spans: list[Span]) -> None:
    world = World()
    start = world.time
    job_id = await begun(world)
    await world.run_all(job_id)
    await world.stop()
    assert [span[0] for span in spans] == ["waiting", "planning", "running", "scoring", "job"]
    steps = [span[2:4] for span in spans]
    assert steps[0][0] == start
    assert [began for began, _ in steps[1:4]] == [ended for _, ended in steps[:3]]
    assert steps[4] == (start, steps[3][1])
    assert {(span[1], span[4]) for span in spans} == {(1, "")}


async def test_a_cancelled_job_says_why_and_its_next_attempt_begins_anew(spans: list[Span]) -> None:
    world = World()
    job_id = await begun(world)
    await world.desk.cancel(ALICE, job_id)
    assert spans[-1][:2] == ("job", 1)
    assert spans[-1][4] == "cancelled"
    world.time += 60
    again = world.time
    world.fleet.hear(evaluator(), again)
    await world.desk.retry(ALICE, job_id)
    await world.settle()
    await world.planned(job_id, plan(2, 2, ["one"]))
    await world.run_all(job_id)
    await world.stop()
    assert [span[:3] for span in spans[-5:]] == [
        ("waiting", 2, again),
        ("planning", 2, again),
        ("running", 2, again),
        ("scoring", 2, again),
        ("job", 2, again),
    ]


async def test_another_place_in_the_queue_has_no_span(spans: list[Span]) -> None:
    world = World(Limits(running_jobs=1))
    await begun(world)
    waiting = await world.create()
    before = list(spans)
    await world.desk.set_priority(ALICE, waiting, job_pb2.PRIORITY_LOW)
    await world.stop()
    assert spans == before
