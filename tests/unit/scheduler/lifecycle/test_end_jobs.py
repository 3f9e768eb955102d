"""The last step of jobs: few seals at once, one for each job, and no slot held."""

from __future__ import annotations

import asyncio

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
