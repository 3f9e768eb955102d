"""The last step of jobs: few seals at once, one for each job, and no slot held."""

from __future__ import annotations

import asyncio

import pytest

from services.errors import TouchstoneError
from services.scheduler import asking
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import FakeResults, World, evaluator, plan
from touchstone.v1 import job_pb2, results_service_pb2


class SlowResults(FakeResults):
    """Seals when it is told to; `most` seals were under way at once."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.under_way = self.most = 0

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.go.wait()
        self.under_way -= 1
        return await super().seal(job, sequence)


async def test_few_seals_are_under_way_at_once_and_each_job_is_sealed_once() -> None:
    world = World(Limits(running_jobs=3, pending_per_owner=100))
    world.results = slow = SlowResults()
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    jobs = [await world.create() for _ in range(30)]

    async def run_what_has_started() -> None:
        while started := [job for job in jobs if world.state(job) == "planning"]:
            for job in started:
                await world.planned(job, plan(2, 2, ["one"]))
                await world.run_all(job)

    await run_what_has_started()
    queue = world.desk.queue()
    # Beyond so many no further job is started: it would only wait there.
    assert (len(queue.running), len(queue.scoring) + len(queue.pending), queue.slots) == (0, 30, 3)
    assert 20 <= len(queue.scoring) <= 22
    assert queue.scoring[0].progress.current_step.startswith("Scoring")
    assert slow.most == 4
    slow.go.set()
    for _ in range(30):
        await world.settle()
        await run_what_has_started()
    assert {world.state(job) for job in jobs} == {"completed"}
    assert sorted(slow.sealed) == sorted(jobs)
    assert slow.most == 4
    await world.stop()


class FailingResults(FakeResults):
    """Fails at the first `failures` seals, as a service does whose disk gives an error."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures, self.asked = failures, 0

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        self.asked += 1
        if self.asked <= self.failures:
            raise TouchstoneError("Internal error; the service's log has the details.")
        return await super().seal(job, sequence)


@pytest.mark.parametrize(("failures", "asked", "state"), [(4, 5, "completed"), (1000, 5, "failed")])
async def test_a_seal_that_fails_is_asked_for_again_a_few_times(
    failures: int, asked: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_FIRST_PAUSE_S", 0.0)
    world = World()
    world.results = failing = FailingResults(failures)
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job, plan(2, 2, ["one"]))
    await world.run_all(job)
    for _ in range(20):
        await world.settle()
    assert (world.state(job), failing.asked) == (state, asked)
    await world.stop()
