"""A backup that is made while answers arrive, and an installation that has nothing else."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.recovery.restore import restore
from services import bus, rpc
from tests.integration.test_backups import Installation, begun
from tests.integration.test_results_recovery import check_all_within, said_all
from tests.integration.test_results_service import publish, publish_event
from tests.unit.results.builders import event, job, plan
from tests.waiting import answered
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import results_service_pb2_grpc

pytestmark = pytest.mark.stack
UNITS, ITEMS = 400, 10


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    yield installation
    if installation.service.process is not None and installation.service.process.poll() is None:
        installation.service.end()
    installation.nats.kill()


async def backed_up_and_restored(made: Installation) -> str:
    """Loses everything after a backup that was made while answers arrived, and restores it: there is every answer that
    was there when the backup began, and none is missing between those and the last one. Returns the backup's place."""
    async with rpc.channel(made.service.address) as channel:
        stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        connection = await begun(made)
        await said_all(stub, connection)
        running = job("during", plan("t", UNITS * ITEMS), suite="other", minute=5)
        await publish_event(connection, event("0005", running))
        await made.hears()
        arriving = asyncio.create_task(publish(connection, "during", range(UNITS), ITEMS, pause_s=0.005))
        await asyncio.sleep(0.5)
        before = (await connection.js.stream_info(bus.RESULTS)).state.messages
        answer = json.loads((await connection.client.request(bus.BACKUPS, timeout=120)).data)
        assert "folder" in answer, answer
        await arriving
        await connection.close()
        await made.stop()
        for folder in ("results", "nats/jetstream"):
            shutil.rmtree(made.state / folder)
        await asyncio.to_thread(restore, answer["folder"], made.state, made.said.append)
        made.start()
        await check_all_within(stub)
        connection = await bus.connect(made.nats.url, "test")
        stored = (await connection.js.stream_info(bus.RESULTS)).state.messages
        await connection.close()
        # Two units are of the jobs that said_all makes.
        expected = (stored - 2) * ITEMS
        asked = pb.ListItemsRequest(job_id="during", page_size=1)
        await answered(lambda: stub.ListItems(asked), lambda page: page.total_size == expected)
        await made.stop()
    ((count, last),) = made.service.rows("SELECT count(*), max(item) FROM items WHERE job_id = 'during'")
    assert before <= stored
    assert (count, last) == (expected, expected - 1)
    return str(answer["folder"])


async def test_a_backup_during_ingest_has_no_gap(made: Installation) -> None:
    place = await backed_up_and_restored(made)
    assert Path(place).parent == made.state / "backups"
