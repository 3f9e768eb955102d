"""One fault each, the nastier ones: a stale leader, a poison unit, a long outage of results, restarts of NATS."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from services import bus
from services.scheduler.nats.lease import TTL_S
from tests.chaos import mirror
from tests.chaos.invariants import violations
from tests.chaos.launched import until, until_answered
from tests.chaos.shooting import job_under_watch
from tests.chaos.world import MODELS, World, open_world
from touchstone.v1 import job_pb2, scheduler_service_pb2, scheduler_service_pb2_grpc

pytestmark = pytest.mark.chaos


@asynccontextmanager
async def standby_scheduler(world: World) -> AsyncIterator[scheduler_service_pb2_grpc.SchedulerServiceAsyncStub]:
    """A second scheduler beside the launcher's."""
    launched, port = world.launched, free_port()
    environment = launched.environment | {
        "TOUCHSTONE_NATS_URL": launched.nats_url,
        "TOUCHSTONE_NATS_MONITOR_URL": launched.nats_monitor_url,
        "TOUCHSTONE_SERVICE_TOKEN": (launched.state_dir / "service-token").read_text(),
        "TOUCHSTONE_SCHEDULER_NAME": "scheduler-2",
        "TOUCHSTONE_SCHEDULER_LISTEN": f"127.0.0.1:{port}",
        "TOUCHSTONE_RESULTS": launched.results,
    }
    with (launched.state_dir / "logs" / "scheduler-2.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.scheduler"), cwd=ROOT, env=environment, stderr=log
        )
    try:
        async with _connected(f"127.0.0.1:{port}") as scheduler:
            yield scheduler
    finally:
        process.terminate()
        await process.wait()


async def test_a_leader_that_wakes_after_its_lease_can_change_nothing(tmp_path: Path) -> None:
    # The launcher would replace the paused leader.
    async with open_world(tmp_path, TOUCHSTONE_SILENT_S="3600") as world:
        launched, leader = world.launched, world.scheduler
        pid = launched.pid("scheduler")
        assert pid is not None
        async with (
            standby_scheduler(world) as standby,
            _connected(launched.scheduler) as stale,
            job_under_watch(world, 0, MODELS[0]) as run,
        ):
            await run.reaches(0.2)
            os.kill(pid, signal.SIGSTOP)
            try:
                # It lies in the paused leader's socket and is the first thing that it reads.
                cancelling = asyncio.create_task(_code(stale, run.job_id))
                world.scheduler = standby
                await until_answered(lambda: world.job(run.job_id), TTL_S + 30, "the standby does not lead")
                before = run.job.progress.items_done
                await until(lambda: run.job.progress.items_done > before, 60, "the job does not go on")
            finally:
                os.kill(pid, signal.SIGCONT)
            assert await cancelling == grpc.StatusCode.UNAVAILABLE
            await run.reaches(1)
        world.scheduler = leader
        await until_answered(lambda: world.job(run.job_id), TTL_S + 30, "the first scheduler does not lead again")
        assert await violations(world, run) == []
        assert "leadership ended" in launched.log("scheduler")


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[scheduler_service_pb2_grpc.SchedulerServiceAsyncStub]:
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        yield scheduler_service_pb2_grpc.SchedulerServiceStub(channel)


async def _code(scheduler: scheduler_service_pb2_grpc.SchedulerServiceAsyncStub, job_id: str) -> grpc.StatusCode:
    """How a scheduler answers to cancelling the job."""
    try:
        await scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=job_id), timeout=180)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_unit_that_kills_its_evaluators_fails_its_job_and_no_other(tmp_path: Path) -> None:
    async with open_world(tmp_path, "poison", TOUCHSTONE_ACK_WAIT_S="1") as world:
        poisoned = await world.submit(MODELS[0], [mirror.POISON[0]])
        healthy = await world.submit(MODELS[1], ["cola"])
        failed, completed = await asyncio.gather(world.finished(poisoned, 180), world.finished(healthy, 180))
        assert failed.state == job_pb2.Job.STATE_FAILED
        assert "crashed its evaluator three times" in failed.reason
        assert completed.state == job_pb2.Job.STATE_COMPLETED
        assert not completed.incomplete
        assert len(await world.items(healthy)) == mirror.TASKS["cola"]
        assert await world.messages(bus.DLQ) == 1
        # The same evaluators go on.
        after = await world.finished(await world.submit(MODELS[2], ["rte"]), 120)
        assert after.state == job_pb2.Job.STATE_COMPLETED


async def test_a_job_waits_for_a_results_service_that_is_away_for_long(tmp_path: Path) -> None:
    async with open_world(tmp_path, TOUCHSTONE_SILENT_S="3600") as world:
        launched = world.launched
        async with job_under_watch(world, 0, MODELS[0]) as run:
            await run.reaches(0.3)
            # The next one is stopped before it serves.
            down = await launched.replaced("results", await launched.kill("results"))
            os.kill(down, signal.SIGSTOP)
            try:
                await until(lambda: run.job.state == job_pb2.Job.STATE_FINALIZING, 120, "the calls do not end")
                await asyncio.sleep(20)
                assert run.job.state == job_pb2.Job.STATE_FINALIZING
            finally:
                os.kill(down, signal.SIGCONT)
            back = time.monotonic()
        assert time.monotonic() - back < 30
        assert await violations(world, run) == []


async def test_a_job_survives_three_restarts_of_nats(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        launched = world.launched
        async with job_under_watch(world, 0, MODELS[0]) as run:
            for share in (0.1, 0.4, 0.7):
                await run.reaches(share)
                old = await launched.kill("nats", signal.SIGTERM)
                await launched.replaced("nats", old)
                await launched.until_ready("nats")
        assert await violations(world, run) == []


@pytest.mark.parametrize("target", ["gateway", "scheduler", "nats"])
async def test_a_job_created_during_a_crash_is_created_once(tmp_path: Path, target: str) -> None:
    async with open_world(tmp_path) as world:
        created = []
        for number in range(3):
            creating = asyncio.create_task(world.submit(MODELS[number], ["cola"], limit=20))
            await asyncio.sleep(0.01 * number)
            await world.launched.kill(target)
            created.append(await creating)
            await world.launched.until_ready()
        jobs = [await world.finished(job_id, 120) for job_id in created]
        assert {job.state for job in jobs} == {job_pb2.Job.STATE_COMPLETED}
        assert sorted(job.job_id for job in await world.jobs()) == sorted(created)
        assert [len(await world.items(job_id)) for job_id in created] == [20, 20, 20]
