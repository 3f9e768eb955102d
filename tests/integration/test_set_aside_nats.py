"""Stored messages that cannot be handled: each service sets them aside and goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nats.js.errors import APIError

from services import bus
from services.bus import SettingAside, count_set_aside, list_set_aside
from services.bus.contract import batches_endpoint, set_aside_subject
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.unit.scheduler.fakes import plan
from tests.waiting import answered
from touchstone.v1 import job_pb2, scheduler_service_pb2, set_aside_pb2

pytestmark = pytest.mark.stack

JOB = "11111111-2222-4333-8444-555555555555"
NO_PROTOBUF = b"\xff\xff\xff"


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    async with running(nats) as made:
        yield made


async def aside(harness: Harness) -> list[set_aside_pb2.SetAsideMessage]:
    request = scheduler_service_pb2.ListSetAsideMessagesRequest()
    return list((await harness.stub().ListSetAsideMessages(request, timeout=15)).messages)


def subjects_of(job_id: str) -> dict[str, str]:
    """A subject of every stream that a scheduler reads at its start, with a word for it."""
    return {
        "a job": bus.kv_subject(bus.JOBS, bus.job_key(JOB)),
        "an audit event that waits": bus.kv_subject(bus.JOBS, "outbox.1"),
        "a schedule": bus.kv_subject(bus.JOBS, "schedule.1"),
        "an evaluator": bus.kv_subject(bus.EVALUATORS, "e9"),
        "a batch": bus.kv_subject(bus.PROVIDER_BATCHES, f"{job_id}.1.0"),
        "a delivery": bus.kv_subject(bus.DELIVERIES, "d1"),
        "a plan": bus.results_subject(job_id, bus.PLAN_UNIT),
        "items": bus.results_subject(job_id, 3),
        "a unit of no number": f"results.{job_id}.x",
        "a subject of another form": "results.x",
        "an event": bus.audit_subject(job_id),
        "work of no form": "work.x",
        "work of no number": f"work.{batches_endpoint('stub')}.1.{job_id}.x",
        "work that no plan has": bus.work_subject("stub", 1, job_id, 10**9),
    }


async def test_a_message_is_set_aside_once_with_its_reason(harness: Harness) -> None:
    found = bus.Found(bus.RESULTS, 7, f"results.{JOB}.3", b"x" * 700_000, {"a": "ä\udcff"})
    for _ in range(2):
        await SettingAside(harness.connection, "scheduler").take(found, ValueError("no\nnumber"))
    ((_, kept),) = await list_set_aside(harness.connection, 0, 10)
    assert (kept.service, kept.stream, kept.sequence, kept.job_id) == ("scheduler", bus.RESULTS, 7, JOB)
    assert (kept.reason, kept.size, len(kept.data)) == ("ValueError: no number", 700_000, 1000)
    await SettingAside(harness.connection, "results").take(found, ValueError("no number"))
    assert await count_set_aside(harness.connection) == 2
    await harness.connection.js.publish(set_aside_subject("x", "y", 1, "z"), NO_PROTOBUF)
    (*_, (position, unread)) = await list_set_aside(harness.connection, 0, 10)
    assert (unread.stream, unread.sequence, unread.data) == (bus.DLQ, position, NO_PROTOBUF)
    assert "cannot be read" in unread.reason


async def test_a_start_survives_what_it_cannot_read_and_an_admin_sees_it(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
    headers = bus.ResultHeaders(kind=bus.KIND_ITEMS, attempt=1, items=1).encode()
    for subject in subjects_of(job.job_id).values():
        await harness.connection.js.publish(subject, NO_PROTOBUF)
    wrong: dict[str, Any] = headers | {"Touchstone-Items": "many"}
    await harness.connection.js.publish(bus.results_subject(job.job_id, 4), b"", headers=wrong)
    await harness.connection.js.publish(bus.results_subject(job.job_id, 4), b"", headers={"Status": "503"})
    listed: list[list[set_aside_pb2.SetAsideMessage]] = []
    for _ in range(2):
        async with harness.scheduler():
            assert (await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)).attempt == 1
            listed.append(await answered(lambda: aside(harness), lambda found: len(found) >= 10))
    assert len(listed[0]) == len(listed[1]), "a second start sets nothing aside again"
    streams = {one.stream for one in listed[1]}
    assert streams == {
        *("KV_JOBS", "KV_EVALUATORS", "KV_PROVIDER_BATCHES", "KV_DELIVERIES"),
        *(bus.RESULTS, bus.AUDIT, bus.WORK),
    }
    assert all(one.reason for one in listed[1])


async def raw(url: str, subject: str, headers: bytes) -> None:
    """Publishes without a body what nats-py would not write."""
    host, port = url.removeprefix("nats://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b'CONNECT {"verbose":false,"headers":true}\r\n')
    writer.write(f"HPUB {subject} {len(headers)} {len(headers)}\r\n".encode() + headers + b"\r\nPING\r\n")
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.close()


async def test_headers_that_read_like_the_servers_own_word_stop_no_start(harness: Harness, nats: NatsServer) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.answer_plan(job.job_id)
        await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)
    for subject in subjects_of(job.job_id).values():
        for status in ("503", "404", "100", "409"):
            for body in (b"", NO_PROTOBUF):
                with contextlib.suppress(APIError):  # WORK takes one message of each subject
                    await harness.connection.js.publish(subject, body, headers={"Status": status})
        for line in (b"NATS/1.0 503\r\n\r\n", b"NATS/1.0 \xff\xfe\xfd x\r\n\r\n"):
            await raw(nats.url, subject, line)
    async with harness.scheduler():
        assert (await harness.wait(job.job_id, job_pb2.Job.STATE_RUNNING)).attempt == 1
        another = await harness.create()
        await harness.answer_plan(another.job_id)
        await harness.wait(another.job_id, job_pb2.Job.STATE_RUNNING)
        assert {one.stream for one in await aside(harness)} >= {"KV_JOBS", bus.RESULTS}


async def test_a_leader_logs_how_many_messages_are_set_aside(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with harness.scheduler():
        await harness.create()
    assert "ListSetAsideMessages" not in caplog.text
    for sequence in (7, 8):
        found = bus.Found(bus.RESULTS, sequence, f"results.{JOB}.3", b"x")
        await SettingAside(harness.connection, "results").take(found, ValueError("no number"))
    async with harness.scheduler():
        await harness.create()
    told = [record.getMessage() for record in caplog.records if "ListSetAsideMessages" in record.getMessage()]
    assert told == ["2 messages were set aside; ListSetAsideMessages lists them"]


async def test_a_plan_that_cannot_be_read_fails_its_job_with_the_reason(harness: Harness) -> None:
    async with harness.scheduler():
        broken, fine = await harness.create(), await harness.create()
        await harness.wait(fine.job_id, job_pb2.Job.STATE_PLANNING)
        headers = bus.ResultHeaders(kind=bus.KIND_PLAN, attempt=1, done=True).encode()
        subject = bus.results_subject(broken.job_id, bus.PLAN_UNIT)
        await harness.connection.js.publish(subject, NO_PROTOBUF, headers=headers)
        failed = await harness.wait(broken.job_id, job_pb2.Job.STATE_FAILED)
        assert "plan cannot be read (DecodeError)" in failed.reason
        ((_, kept),) = await list_set_aside(harness.connection, 0, 10)
        assert (kept.job_id, kept.data) == (broken.job_id, NO_PROTOBUF)
        await harness.connection.publish_plan(fine.job_id, 1, plan())
        await harness.wait(fine.job_id, job_pb2.Job.STATE_RUNNING)


async def test_a_plan_of_sizes_that_cannot_be_fails_its_job_with_the_reason(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
        await harness.connection.publish_plan(job.job_id, 1, plan(items=-5))
        failed = await harness.wait(job.job_id, job_pb2.Job.STATE_FAILED)
        assert "cannot be used (ValueError)" in failed.reason
        assert await answered(lambda: count_set_aside(harness.connection), bool) == 1


async def listed(harness: Harness) -> list[job_pb2.Job]:
    """Empty while nobody leads."""
    try:
        return list((await harness.stub().ListJobs(scheduler_service_pb2.ListJobsRequest(), timeout=30)).jobs)
    except grpc.aio.AioRpcError as error:
        if error.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        return []


PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""Shrinking would take minutes: each example starts a scheduler."""
HEADERS = st.dictionaries(
    st.sampled_from([*bus.ResultHeaders(bus.KIND_ITEMS, 1, cost=1.0).encode(), "Status", "Description", "KV"]),
    st.one_of(
        st.sampled_from([bus.KIND_ITEMS, bus.KIND_PLAN, bus.KIND_FAULT, bus.KIND_RETURNED, "nan", "-1", "1", "409"]),
        st.integers().map(str),
        st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20),
    ),
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=PHASES)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(subjects_of(""))), st.binary(max_size=200), HEADERS), max_size=30),
)
def test_no_messages_whatever_stop_a_start(nats: NatsServer, messages: list[Any]) -> None:
    async def start() -> None:
        async with running(nats) as harness:
            async with harness.scheduler():
                job = await harness.create()
                await harness.wait(job.job_id, job_pb2.Job.STATE_PLANNING)
            subjects = subjects_of(job.job_id)
            for name, data, headers in messages:
                # WORK takes one message of each subject.
                try:
                    await harness.connection.js.publish(subjects[name], data, headers=headers)
                except APIError:
                    continue
            async with harness.scheduler():
                found = await answered(partial(listed, harness), bool)
                assert job.job_id in {one.job_id for one in found}
                # Once around of everything that looks at jobs in turn.
                await asyncio.sleep(0.6)
                again = await harness.create()
                await harness.stub().CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=again.job_id), timeout=30)
                for one in (job for job in found if job.state < job_pb2.Job.STATE_COMPLETED):
                    await harness.stub().CancelJob(
                        scheduler_service_pb2.CancelJobRequest(job_id=one.job_id), timeout=30
                    )

    asyncio.run(start())
