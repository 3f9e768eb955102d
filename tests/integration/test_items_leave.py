"""Items that leave the database of a running results service for its archive, while it is killed again and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from services import rpc
from tests.integration.test_backups import Installation, begun
from tests.integration.test_results_service import publish, publish_event, seal
from tests.unit.results.builders import event, job, plan
from tests.waiting import until
from touchstone.v1 import job_pb2, results_service_pb2_grpc
from touchstone.v1 import results_service_pb2 as pb

pytestmark = pytest.mark.stack

JOBS = [f"job-{number}" for number in range(4)]
UNITS = 40


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    installation.service.environment |= {
        "TOUCHSTONE_ARCHIVE": str(tmp_path / "archive"),
        "TOUCHSTONE_KEEP_ITEMS_DAYS": "0.00001",
    }
    yield installation
    if installation.service.process is not None and installation.service.process.poll() is None:
        installation.service.end()
    installation.nats.kill()


def away(made: Installation) -> set[object]:
    """While the service is stopped."""
    return {job_id for (job_id,) in made.service.rows("SELECT job_id FROM archived_items WHERE returned_at IS NULL")}


async def exported(stub: results_service_pb2_grpc.ResultsServiceAsyncStub, job_id: str) -> bytes:
    request = pb.ExportRequest(kind="KIND_ITEMS", format="FORMAT_JSONL", items=pb.ListItemsRequest(job_id=job_id))
    return b"".join([piece.data async for piece in stub.Export(request, timeout=90, wait_for_ready=True)])


async def test_kills_while_items_leave_and_come_back_lose_and_double_nothing(made: Installation) -> None:
    draw = random.Random(36)
    async with rpc.channel(made.service.address) as channel:
        stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        connection = await begun(made)
        for number, name in enumerate(JOBS):
            size = UNITS * 10
            running = job(name, plan("t", size), minute=number, item_set=name)
            await seal(stub, running, await publish(connection, name, range(UNITS)))
            done = job(name, plan("t", size), state=job_pb2.Job.STATE_COMPLETED, minute=number, item_set=name)
            done.finished_at.GetCurrentTime()
            await publish_event(connection, event(f"000{number}", done, "completed"))
        before = {name: await exported(stub, name) for name in JOBS}
        result = await stub.GetJobResult(pb.GetJobResultRequest(job_id=JOBS[0]))
        archive = made.state.parent / "archive"
        await until(lambda: len(list(archive.rglob("version-*.json"))) == len(JOBS), within=180)

        gone, rounds = set[object](), 0
        while rounds < 12 or gone != set(JOBS):
            # Items leave right after the start.
            made.service.end()
            gone = away(made)
            rows = made.service.rows("SELECT job_id, count(*) FROM items GROUP BY ALL")
            counts = {str(job_id): count for job_id, count in rows}
            assert all(counts[name] == UNITS * 10 for name in JOBS if name not in gone)
            rounds += 1
            assert rounds < 60
            made.service.start()
            if draw.random() < 0.5:
                await asyncio.sleep(draw.random() * 6)
            else:
                await made.service.answers()
                name = draw.choice(JOBS)
                assert await exported(stub, name) == before[name]
                await asyncio.sleep(draw.random())
        assert (await stub.GetJobResult(pb.GetJobResultRequest(job_id=JOBS[0]), wait_for_ready=True)) == result
        assert {name: await exported(stub, name) for name in JOBS} == before
        await connection.close()
