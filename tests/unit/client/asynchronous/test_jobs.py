"""Jobs by the asynchronous client."""

from __future__ import annotations

from tests.unit.client.fakes import JOB, Fakes, watched
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient


async def test_an_awaited_watch_does_so_too(fakes: Fakes) -> None:
    watched(fakes)
    async with AsyncClient() as client:
        assert (await client.wait(JOB)).state == job_pb2.Job.STATE_COMPLETED
    assert len(fakes.heard) == 3
