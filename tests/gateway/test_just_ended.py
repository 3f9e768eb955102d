"""The first reads after a job ends: the results service hears of it a moment later than the scheduler."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.gateway import fake_services
from tests.gateway.fake_world import busy_world
from tests.gateway.gateway_server import running
from touchstone.v1 import job_pb2, results_service_pb2

BASE = "/api/v1/benchmarking"
COMPLETED = job_pb2.Job.STATE_COMPLETED
LATE = 4
"""Reads of the job after which the results service knows that it has ended."""


@pytest.mark.parametrize(
    "read", [f"{BASE}/overview", "/overview?suite=glue", "/jobs?status=completed", f"{BASE}/results?status=completed"]
)
async def test_counts_have_a_job_that_has_just_ended(read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world()
    done = next(job for job in world.jobs.values() if job.state == COMPLETED and not job.baseline)
    before = job_pb2.Job(job_id=done.job_id, state=job_pb2.Job.STATE_RUNNING, attempt=done.attempt)
    asked = 0

    async def queue(self: Any, request: Any, context: Any) -> Any:
        answer = await whole_queue(self, request, context)
        answer.queue.ended.append(done)
        return answer

    async def job(self: Any, request: Any, context: Any) -> Any:
        nonlocal asked
        if request.job_id != done.job_id:
            return await whole_job(self, request, context)
        asked += 1
        return results_service_pb2.ResultsServiceGetJobResponse(job=before if asked < LATE else done)

    def counted(name: str) -> Any:
        whole = getattr(fake_services.Results, name)

        async def count(self: Any, request: Any, context: Any) -> Any:
            if asked < LATE:
                done.state = before.state
            try:
                return await whole(self, request, context)
            finally:
                done.state = COMPLETED

        return count

    whole_queue, whole_job = fake_services.Scheduler.GetQueue, fake_services.Results.GetJob
    monkeypatch.setattr(fake_services.Scheduler, "GetQueue", queue)
    monkeypatch.setattr(fake_services.Results, "GetJob", job)
    for name in ("GetOverview", "ListJobs"):
        monkeypatch.setattr(fake_services.Results, name, counted(name))
    async with running(world) as gateway:
        answers = []
        for _ in range(2):
            begin = time.monotonic()
            answer = await gateway.client.get(read, headers={"Accept": "text/html"} if BASE not in read else {})
            assert answer.status_code == 200, answer.text
            answers.append((_counts(answer.text), time.monotonic() - begin))
            assert asked == LATE, "a job that was found once is not asked for again"
    assert answers[0][0] == answers[1][0], "the first answer has the counts of the second one"
    assert answers[0][0]
    assert answers[0][1] < 1, "it waits only until the results service has heard of the end"


def _counts(text: str) -> list[str]:
    return re.findall(r'"(?:total|total_jobs|completed_jobs)": ?(\d+)', text) or [
        found.strip() for found in re.findall(r">\s*([\d,]+)(?=\s*<|\s+completed)", text)
    ]
