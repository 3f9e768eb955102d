"""Lines that services log about jobs, from a handler through the LOGS stream to a caller."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import grpc
import pytest

from services import bus
from tests.integration.scheduler_rig import Harness, running
from tests.nats_server import NatsServer
from tests.waiting import answered
from touchstone.v1 import job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

log = logging.getLogger("services.test")


@pytest.fixture
async def harness(nats: NatsServer) -> AsyncIterator[Harness]:
    logging.getLogger("services").setLevel(logging.INFO)
    async with running(nats) as made:
        yield made
    logging.getLogger("services").setLevel(logging.NOTSET)


async def lines(harness: Harness, job_id: str, page_size: int = 0, level: str = "") -> list[pb.LogLine]:
    """All pages."""
    request = pb.ListJobLogsRequest(job_id=job_id, page_size=page_size, level=level)
    found: list[pb.LogLine] = []
    while True:
        answer = await harness.stub().ListJobLogs(request, timeout=15)
        assert len(answer.lines) <= (page_size or 200)
        found += answer.lines
        if not answer.next_page_token:
            return found
        request.page_token = answer.next_page_token


async def logged(harness: Harness, job_id: str, count: int) -> list[pb.LogLine]:
    """Once there are so many."""
    return await answered(lambda: lines(harness, job_id), lambda found: len(found) >= count)


async def test_a_job_has_the_lines_of_all_services_in_order(harness: Harness) -> None:
    async with harness.scheduler():
        job_id = (await harness.create()).job_id
        await harness.wait(job_id, job_pb2.Job.STATE_PLANNING)
        await logged(harness, job_id, 2)
        line = pb.LogLine(level="info", source="evaluator e1", text="sst2 starts here")
        await harness.connection.publish_log(job_id, line.level, line.SerializeToString())
        for number in range(25):
            log.info("line %d", number, extra=bus.of_job(job_id))
        log.warning("slow", extra=bus.of_job(job_id))
        log.error("broken", extra=bus.of_job(job_id))
        log.info("of no job")
        log.info("of another", extra=bus.of_job("another"))
        found = await logged(harness, job_id, 30)
        assert [(one.source, one.text) for one in found] == [
            ("scheduler s1", "created"),
            ("scheduler s1", "planning"),
            ("evaluator e1", "sst2 starts here"),
            *(("scheduler s1", f"line {number}") for number in range(25)),
            ("scheduler s1", "slow"),
            ("scheduler s1", "broken"),
        ]
        assert [one.logged_at.ToNanoseconds() > 0 for one in found[:2]] == [True, True]
        assert await lines(harness, job_id, page_size=7) == found
        assert await lines(harness, job_id, page_size=30) == found
        assert [one.text for one in await lines(harness, job_id, level="warning")] == ["slow", "broken"]
        assert [one.text for one in await lines(harness, job_id, page_size=1, level="error")] == ["broken"]


async def test_a_flood_of_one_level_pushes_out_none_of_a_graver_one(harness: Harness) -> None:
    async with harness.scheduler():
        job_id = (await harness.create()).job_id
        error = pb.LogLine(level="error", text="first").SerializeToString()
        await harness.connection.publish_log(job_id, "error", error)
        flood = pb.LogLine(level="info", text="flood").SerializeToString()
        for _ in range(2100):
            await harness.connection.client.publish(bus.logs_subject(job_id, "info"), flood)
        # Answered when all before it are stored: pages that are read meanwhile would move under the reader.
        await harness.connection.js.publish(bus.logs_subject(job_id, "info"), flood)
        found = await logged(harness, job_id, 2001)
        assert len(found) == 2001
        assert found[0].text == "first"


@pytest.mark.parametrize("field", [{"page_size": 1001}, {"page_size": -1}, {"level": "debug"}, {"page_token": "x%"}])
async def test_wrong_questions_are_refused(harness: Harness, field: dict[str, str | int]) -> None:
    async with harness.scheduler():
        job_id = (await harness.create()).job_id
        request = pb.ListJobLogsRequest(job_id=job_id)
        for name, value in field.items():
            setattr(request, name, value)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await harness.stub().ListJobLogs(request, timeout=15)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_lines_that_cannot_be_read_do_not_hide_the_others(harness: Harness) -> None:
    async with harness.scheduler():
        job = await harness.create()
        for level, stored in (("info", b"\xff"), ("info", pb.LogLine(text="read").SerializeToString())):
            await harness.connection.publish_log(job.job_id, level, stored)
        request = pb.ListJobLogsRequest(job_id=job.job_id)
        texts = [line.text for line in (await harness.stub().ListJobLogs(request, timeout=15)).lines]
        assert {"read", "This line cannot be read."} <= set(texts)
