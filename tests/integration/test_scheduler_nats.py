"""The scheduler process's own wiring against a real NATS server: leadership, fencing, recovery."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import grpc
import pytest

from deploy.local.ports import free_port
from services import bus
from services.scheduler.nats.lease import Lease
from services.scheduler.nats.streams import WorkStream
from services.scheduler.ports import LeadershipLostError
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.unit.scheduler.fakes import DATASET, dataset_spec, plan, spec
from tests.waiting import answered
from touchstone.v1 import dataset_pb2, evaluator_pb2, job_pb2, scheduler_service_pb2, unit_pb2


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    async with running(nats) as made:
        yield made


async def audited(harness: Harness) -> int:
    return (await harness.connection.js.stream_info(bus.AUDIT)).state.messages


async def test_a_job_runs_over_real_streams(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create("r1")
        assert (await harness.create("r1")).job_id == job.job_id
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        done = 0
        while done < 20:
            for unit in await harness.units():
                await harness.finish(unit)
                done += 1
        assert done == 20
        finished = await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED)
        assert finished.progress.items_done == 200
        assert await answered(lambda: audited(harness), lambda events: events >= 5) == 5


async def test_jobs_of_one_request_are_stored_together_and_found_by_the_next_scheduler(harness: Harness) -> None:
    request = scheduler_service_pb2.CreateJobsRequest(request_id="r1", specs=[spec() for _ in range(10)])
    async with harness.scheduler(crash=True):
        made = await harness.create_jobs(request)
        assert len({job.job_id for job in made}) == 10
    async with harness.scheduler():
        again = await harness.create_jobs(request)
        assert [job.job_id for job in again] == [job.job_id for job in made]
        wrong = scheduler_service_pb2.CreateJobsRequest(specs=[spec(), job_pb2.JobSpec(model="m")])
        with pytest.raises(grpc.aio.AioRpcError, match="Say what to run") as refused:
            await harness.stub().CreateJobs(wrong, timeout=15)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        known = await harness.stub().ListJobs(scheduler_service_pb2.ListJobsRequest(), timeout=15)
        assert len(known.jobs) == 10


async def test_a_crash_in_the_middle_repeats_no_done_unit_and_loses_none(harness: Harness) -> None:
    async with harness.scheduler(crash=True):
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        first = await harness.units(at_least=3)
        await harness.finish(first[0])
    # While nobody leads, a unit ends and another reports without ending.
    await harness.finish(first[1])
    await harness.report(first[2], done=False)
    async with harness.scheduler():
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        done = [first[0].unit, first[1].unit]
        left = first[2:]
        while left:
            for unit in left:
                await harness.finish(unit)
                done.append(unit.unit)
            left = await harness.units() if len(done) < 20 else []
        assert sorted(done) == list(range(20))
        await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED)


async def test_a_drained_evaluator_gets_no_unit_until_it_is_resumed_whoever_leads(harness: Harness) -> None:
    async def drain(drain: bool) -> evaluator_pb2.Evaluator:
        request = scheduler_service_pb2.SetEvaluatorDrainRequest(evaluator=name, drain=drain)
        return (await harness.stub().SetEvaluatorDrain(request, timeout=15)).evaluator

    async with harness.scheduler(crash=True):
        (one,) = (await harness.stub().ListEvaluators(scheduler_service_pb2.ListEvaluatorsRequest())).evaluators
        name = one.evaluator
        assert (await drain(True)).drain_requested
        assert await harness.connection.is_drained(name)
        job = await harness.create()
    async with harness.scheduler():
        waits = (await harness.stub().GetJob(scheduler_service_pb2.GetJobRequest(job_id=job.job_id))).job
        assert waits.progress.current_step == "Waiting for an evaluator that serves stub and is not drained"
        unknown = scheduler_service_pb2.SetEvaluatorDrainRequest(evaluator="nobody", drain=True)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await harness.stub().SetEvaluatorDrain(unknown, timeout=15)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND
        assert not (await drain(False)).drain_requested
        assert not await harness.connection.is_drained(name)
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)


async def test_a_plan_answered_while_nobody_led_is_found(harness: Harness) -> None:
    async with harness.scheduler(crash=True):
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
    await harness.answer_plan(job.job_id)
    async with harness.scheduler():
        found = await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        assert found.progress.items_total == 200


async def test_a_retrys_plan_that_was_answered_while_nobody_led_stops_no_start(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        await harness.stub().CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=job.job_id), timeout=15)
        await harness.stub().RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=job.job_id), timeout=15)
        # An evaluator has it in hand.
        (held,) = await (await harness.subscribe(bus.PLAN_ENDPOINT)).fetch(1, timeout=60)
    await harness.connection.publish_plan(job.job_id, 2, plan())
    await held.ack_sync()
    async with harness.scheduler():
        running = await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        assert (running.attempt, running.progress.items_total) == (2, 200)


async def test_what_the_trail_has_lost_is_told_again_by_the_next_leader(harness: Harness) -> None:
    async def last() -> job_pb2.JobEvent:
        found = await harness.connection.js.get_last_msg(bus.AUDIT, bus.audit_subject(job.job_id))
        return job_pb2.JobEvent.FromString(found.data or b"")

    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        await harness.stub().CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=job.job_id), timeout=15)
        await answered(lambda: audited(harness), lambda events: events >= 4)
        lost = await last()
    await harness.connection.js.delete_stream(bus.AUDIT)
    for _ in range(2):
        async with harness.scheduler():
            await harness.wait(job.job_id, job_pb2.Job.STATE_CANCELLED)
            assert await answered(lambda: audited(harness), lambda events: events >= 1) == 1
            told = await last()
            assert (told.event_id, told.action, told.job.state) == (lost.event_id, "cancelled", lost.job.state)
    assert await audited(harness) == 1


async def test_a_second_scheduler_stands_by_and_takes_over_after_a_goodbye(harness: Harness) -> None:
    other = free_port()
    async with harness.scheduler("s1"):
        job = await harness.create()
        async with harness.scheduler("s2", other):
            request = scheduler_service_pb2.GetJobRequest(job_id=job.job_id)
            with pytest.raises(grpc.aio.AioRpcError, match="standby"):
                await harness.stub(other).GetJob(request, timeout=60)
    harness.port = other
    async with harness.scheduler("s2", other):
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)


async def test_a_stale_leader_can_write_nothing(harness: Harness) -> None:
    async with harness.scheduler("s1"):
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
        before = await answered(lambda: audited(harness), lambda events: events >= 2)
        # Another leadership begins while the first still believes in its own.
        await harness.connection.kv_put(bus.JOBS, bus.EPOCH_KEY, b"s2")
        await harness.connection.kv_put(bus.LEASE, "leader", b"s2", ttl_s=60)
        with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
            await harness.stub().CreateJob(scheduler_service_pb2.CreateJobRequest(spec=spec()), timeout=60)
        stored = [key async for key, _ in harness.connection.kv_all(bus.JOBS, "job.*")]
        assert len(stored) == 1
        assert await audited(harness) == before


async def test_a_scheduler_that_loses_the_lead_leads_again(harness: Harness) -> None:
    async def leader() -> bytes | None:
        entry = await harness.connection.kv_get(bus.JOBS, bus.EPOCH_KEY)
        return entry.data if entry else None

    async with harness.scheduler():
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
        for _ in range(2):
            await harness.connection.kv_put(bus.JOBS, bus.EPOCH_KEY, b"another")
            # The write that finds out is this one, or a checkpoint before it.
            with suppress(grpc.aio.AioRpcError):
                await harness.create()
            assert await answered(leader, lambda name: name == b"s1")
            found = await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
            assert found.attempt == 1


async def test_a_leader_whose_lease_ran_out_releases_no_unit(harness: Harness) -> None:
    lease = Lease(harness.connection, "s1")
    work = WorkStream(harness.connection, lease, bus.SettingAside(harness.connection, "scheduler"))
    unit = unit_pb2.Unit(job_id="j", attempt=1, unit=0)
    with pytest.raises(LeadershipLostError):
        await work.release("stub", 2, unit)
    assert await work.released() == set()
    await lease.acquire()
    assert await work.release("stub", 2, unit)
    assert await work.released() == {("j", 0)}


async def test_nats_killed_and_restarted_ends_no_job(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
        harness.nats.kill()
        await asyncio.sleep(0.5)
        harness.nats.restart()
        done: list[int] = []
        while len(done) < 20:
            for unit in await harness.units():
                await harness.finish(unit)
                done.append(unit.unit)
        assert sorted(done) == list(range(20))
        await harness.wait(job.job_id, job_pb2.Job.STATE_COMPLETED)


async def test_a_job_reads_its_dataset_from_the_store(harness: Harness) -> None:
    datasets = bus.Datasets(harness.connection)
    known = dataset_pb2.Dataset(dataset_id=DATASET, name="rows.jsonl", rows=200, digest="d")
    await datasets.put_manifest(dataset_pb2.DatasetManifest(dataset=known))
    request = scheduler_service_pb2.CreateJobRequest(spec=dataset_spec())
    async with harness.scheduler():
        job = (await harness.stub().CreateJob(request, timeout=15)).job
        assert (job.spec.dataset.name, job.spec.dataset.digest) == ("rows.jsonl", "d")
        headers = await harness.connection.job_headers(job.job_id)
        assert headers is not None
        assert headers.dataset == DATASET
        await datasets.delete(DATASET)
        with pytest.raises(grpc.aio.AioRpcError, match=DATASET) as refused:
            await harness.stub().CreateJob(request, timeout=15)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND
