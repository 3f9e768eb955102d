"""Questions to the results service are repeated."""

from __future__ import annotations

import pytest

from services.errors import TouchstoneError
from services.scheduler import results_client
from tests.unit.scheduler.fakes import FakeResults, World, evaluator, plan
from touchstone.v1 import job_pb2, results_service_pb2


class FailingResults(FakeResults):
    """Fails at the first `failures` seals, as a service does whose disk gives an error."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures, self.asked = failures, 0

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        self.asked += 1
        if self.asked <= self.failures:
            raise TouchstoneError("Internal error. The service's log has the details.")
        return await super().seal(job, sequence)


@pytest.mark.parametrize(("failures", "asked", "state"), [(4, 5, "completed"), (1000, 5, "failed")])
async def test_a_seal_that_fails_is_asked_for_again_a_few_times(
    failures: int, asked: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_client, "_FIRST_PAUSE_S", 0.0)
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
