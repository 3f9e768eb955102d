"""The results service after its files lost something that it had acknowledged."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import TYPE_CHECKING

import grpc
import pytest

from services import bus
from tests.integration.test_results_service import (
    Service,
    connection,
    publish,
    publish_event,
    seal,
    service,
    stub,
    told,
)
from tests.unit.results.builders import event, job, plan
from touchstone.v1 import job_pb2, results_service_pb2_grpc
from touchstone.v1 import results_service_pb2 as pb

if TYPE_CHECKING:
    Stub = results_service_pb2_grpc.ResultsServiceAsyncStub

pytestmark = pytest.mark.stack

__all__ = ["connection", "service", "stub"]

GOLDEN = pb.Annotation.VERDICT_GOLDEN


async def said_all(stub: Stub, connection: bus.Bus) -> None:
    """Two finished runs, then everything that a person may say of them."""
    for number, job_id in enumerate(("old", "new")):
        running = job(job_id, plan("t", 10), minute=number)
        position = await publish(connection, job_id, range(1))
        await seal(stub, running, position)
        done = job(job_id, plan("t", 10), state=job_pb2.Job.STATE_COMPLETED, minute=number)
        done.finished_at.GetCurrentTime()
        await publish_event(connection, event(f"000{number}", done, "completed"))
        await told(stub, job_id, 1)
    await stub.NameConfiguration(pb.NameConfigurationRequest(configuration="m1@local", name="first", alias="prod"))
    await stub.MarkRun(pb.MarkRunRequest(job_id="new", mark=pb.RUN_MARK_INVALIDATED, reason="a wrong prompt"))
    for item in range(10):
        await stub.AnnotateItem(
            pb.AnnotateItemRequest(job_id="old", task="t", item=item, verdict=GOLDEN, note=f"{item}")
        )


async def check_all(stub: Stub) -> None:
    await stub.GetJob(pb.ResultsServiceGetJobRequest(job_id="old"), timeout=60, wait_for_ready=True)
    await told(stub, "new", 1)
    entries = (await stub.GetLeaderboard(pb.GetLeaderboardRequest(suite="glue"))).entries
    ranked = [(e.rank, e.job_id, e.name, e.alias, e.run_count, e.mark) for e in entries]
    assert ranked == [(1, "old", "first", "prod", 1, ""), (0, "new", "first", "prod", 1, "invalidated")]
    for item in range(10):
        stored = await stub.GetItem(pb.GetItemRequest(job_id="old", task="t", item=item))
        assert (stored.item.annotation.verdict, stored.item.annotation.note) == (GOLDEN, f"{item}")


@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.stack)])
async def test_a_log_cut_short_anywhere_brings_back_all_that_was_acknowledged(
    service: Service, connection: bus.Bus, stub: Stub, seed: int
) -> None:
    service.start()
    await said_all(stub, connection)
    service.end()
    log = service.database.with_suffix(".duckdb.wal")
    content = log.read_bytes()
    draw = random.Random(seed)
    # One byte of the last record, or anything down to nothing.
    log.write_bytes(content[: -1 if seed == 0 else draw.randrange(len(content))])
    service.start()
    await check_all_within(stub)
    # What is said next takes no number that was lost.
    await stub.AnnotateItem(pb.AnnotateItemRequest(job_id="new", task="t", item=3, verdict=GOLDEN, note="next"))
    numbers = service_numbers(service)
    assert numbers == list(range(1, 12))


@pytest.mark.stack
async def test_a_lost_database_brings_back_all_that_was_acknowledged(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await said_all(stub, connection)
    service.end()
    service.database.unlink()
    service.database.with_suffix(".duckdb.wal").unlink()
    service.start()
    await check_all_within(stub)


@pytest.mark.stack
async def test_what_was_said_before_there_was_a_stream_for_it_is_published_once(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await said_all(stub, connection)
    for _ in range(2):
        service.end()
        await connection.js.delete_stream(bus.KEPT)
        service.start()
        await check_all_within(stub)
        assert (await connection.js.stream_info(bus.KEPT)).state.messages == 12
    service.end()
    service.start()
    await check_all_within(stub)
    assert (await connection.js.stream_info(bus.KEPT)).state.messages == 12


async def test_newest_statements_that_cannot_be_read_stop_no_start_and_no_later_ones(
    service: Service, connection: bus.Bus, stub: Stub
) -> None:
    service.start()
    await said_all(stub, connection)
    service.end()
    for subject in ("kept.marks", "kept.annotations", "kept.configuration_names.x", "kept.x"):
        for body in (b"\xff", b"[1]", b'{"number": 1e400}', b'{"number": 99}'):
            await connection.js.publish(subject, body, headers={"Status": "503"})
    service.start()
    await stub.GetJob(pb.ResultsServiceGetJobRequest(job_id="old"), timeout=60, wait_for_ready=True)
    await stub.AnnotateItem(pb.AnnotateItemRequest(job_id="new", task="t", item=3, verdict=GOLDEN, note="next"))
    newest = await connection.js.get_last_msg(bus.KEPT, "kept.annotations")
    assert json.loads(newest.data or b"")["number"] == 11
    kept = {one.subject for _, one in await bus.list_set_aside(connection, 0, 100)}
    assert kept == {"kept.marks", "kept.annotations", "kept.configuration_names.x", "kept.x"}


async def check_all_within(stub: Stub, timeout_s: float = 60) -> None:
    """Jobs and seals come back beside the first calls."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return await check_all(stub)
        except (AssertionError, grpc.aio.AioRpcError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


def service_numbers(service: Service) -> list[int]:
    service.end()
    return [int(str(number)) for (number,) in service.rows("SELECT number FROM annotations ORDER BY number")]
