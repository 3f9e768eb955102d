"""Schedules of a scheduler process that is killed at the worst moments. Its clock runs a minute in a second."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from nats.aio.msg import Msg

from deploy.local.settings import ROOT
from services import bus
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.servers.webhook_receiver import receiving
from tests.unit.scheduler.fakes import spec
from tests.waiting import answered, until
from touchstone.v1 import job_pb2, job_record_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

SPEED = 60.0
DELAYS_S = (0.0, 0.001, 0.003, 0.006, 0.012, 0.03)
"""From when a job's record is on its way until the process is killed: before, while and after all is stored."""


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    async with running(nats) as made:
        yield made


@asynccontextmanager
async def fast_scheduler(harness: Harness, origin: float) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")} | {
        "TOUCHSTONE_NATS_URL": harness.nats.url,
        "TOUCHSTONE_SCHEDULER_NAME": "fast",
        "TOUCHSTONE_SCHEDULER_LISTEN": f"127.0.0.1:{harness.port}",
        "TOUCHSTONE_RESULTS": f"127.0.0.1:{harness.results_port}",
        "TOUCHSTONE_PENDING_PER_USER": "1000",
        "TOUCHSTONE_ABSENT_AFTER_S": "1e9",
        "TOUCHSTONE_PLANNING_S": "1e9",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "tests/integration/fast_scheduler.py"), str(origin), str(SPEED)),
        env=environment | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "protos/gen")))},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def records(harness: Harness) -> list[job_record_pb2.JobRecord]:
    return [
        job_record_pb2.JobRecord.FromString(msg.data) async for _, msg in harness.connection.kv_all(bus.JOBS, "job.*")
    ]


async def more_jobs(harness: Harness, count: int) -> None:
    """Waits until there are so many more."""
    wanted = len(await records(harness)) + count
    await answered(lambda: records(harness), lambda found: len(found) >= wanted, within=60)


@pytest.mark.stack
async def test_a_time_makes_one_job_however_the_scheduler_is_killed(harness: Harness) -> None:
    origin = time.time()
    born = asyncio.Event()
    known: set[str] = set()

    async def heard(msg: Msg) -> None:
        # A successor may write a job of its predecessor again.
        if bus.JobHeaders.decode(msg.headers).state == job_pb2.Job.STATE_PENDING and msg.subject not in known:
            known.add(msg.subject)
            born.set()

    await harness.connection.kv_watch(bus.JOBS, "job.*", heard)
    async with receiving() as receiver:
        async with fast_scheduler(harness, origin):
            await harness.stub().GetQueue(pb.GetQueueRequest(), timeout=60)
            request = pb.CreateScheduleRequest(cron="* * * * *", spec=spec(), label="every second here")
            schedule = (await harness.stub().CreateSchedule(request, timeout=60)).schedule
            await harness.stub().CreateWebhook(pb.CreateWebhookRequest(url=f"{receiver.url}/ok"), timeout=60)
        for delay in DELAYS_S:
            async with fast_scheduler(harness, origin) as process:
                born.clear()
                async with asyncio.timeout(60):
                    await born.wait()
                await asyncio.sleep(delay)
                process.send_signal(signal.SIGKILL)
        async with fast_scheduler(harness, origin):
            await more_jobs(harness, 2)
            request_ids = Counter(record.request_id for record in await records(harness))
            last = (await harness.stub().ListSchedules(pb.ListSchedulesRequest(), timeout=60)).schedules[0]
            # The webhook, too, has lived through it all.
            job_id = last.last_job_id
            await harness.stub().CancelJob(pb.CancelJobRequest(job_id=job_id), timeout=60)
            await until(lambda: any(job_id.encode() in call.body for call in receiver.calls))

    assert set(request_ids.values()) == {1}, "one job for a time"
    assert len(request_ids) >= 4, "some kills came after the job was stored"
    planned = sorted(int(request_id.split()[-1]) for request_id in request_ids)
    assert all(request_id.startswith(f"schedule {schedule.schedule_id} ") for request_id in request_ids)
    assert all(second % 60 == 0 for second in planned)
    assert last.last_problem == ""
    assert {record.job.spec.schedule_id for record in await records(harness)} == {schedule.schedule_id}


async def test_schedules_outlive_a_restart_of_nats_and_of_the_scheduler(harness: Harness) -> None:
    async with harness.scheduler():
        await harness.stub().GetQueue(pb.GetQueueRequest(), timeout=15)
        request = pb.CreateScheduleRequest(request_id="r", cron="0 3 * * MON", time_zone="Europe/Zurich", spec=spec())
        made = (await harness.stub().CreateSchedule(request, timeout=15)).schedule
        harness.nats.restart()
    async with harness.scheduler():
        (found,) = (await harness.stub().ListSchedules(pb.ListSchedulesRequest(), timeout=20)).schedules
        assert found == made
        assert (await harness.stub().CreateSchedule(request, timeout=15)).schedule == made
        await harness.stub().DeleteSchedule(pb.DeleteScheduleRequest(schedule_id=made.schedule_id), timeout=15)
        assert not (await harness.stub().ListSchedules(pb.ListSchedulesRequest(), timeout=15)).schedules
