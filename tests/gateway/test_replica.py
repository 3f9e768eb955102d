"""A gateway whose results service goes away and comes back, with a copy of the results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deploy.local.ports import free_port
from services import rpc
from services.gateway.replica import Age
from services.gateway.settings import Settings
from services.results.replica.server import Answering
from tests.gateway import fake_services
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running, running
from touchstone.v1 import (
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    results_service_pb2,
    results_service_pb2_grpc,
)

BASE = "/api/v1/benchmarking"
HEADER = "Touchstone-As-Of"
AS_OF = "2020-11-20T08:15:42.125Z"


class Dated:
    """What says as of when the copy is."""

    def as_of(self) -> str:
        return AS_OF


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    address = f"127.0.0.1:{free_port()}"
    settings = Settings(requests_per_minute=10_000, call_timeout_s=3, replica=address)
    async with running(settings=settings) as started:
        results = results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"]
        datasets = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"]
        copy: list[tuple[Callable[[Any, Any], None], Any, str]] = [
            (
                results_service_pb2_grpc.add_ResultsServiceServicer_to_server,
                Answering(results, fake_services.Results(started.world), Dated()),  # type: ignore[arg-type]
                results.full_name,
            ),
            (
                dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server,
                Answering(datasets, fake_services.Datasets(started.world), Dated()),  # type: ignore[arg-type]
                datasets.full_name,
            ),
        ]
        async with rpc.serve(address, rpc.Authenticator(None, ""), copy, grace_s=0.1) as server:
            await server.set_ready(True)
            yield started


HTML = {"Accept": "text/html"}
SAID = "Figures are from 2020-11-20 08:15:42 UTC."


def finished(gateway: Running) -> str:
    world = gateway.world
    return world.finish(world.start(world.add(spec(suite="demo"), "local").job_id).job_id).job_id


async def test_the_copy_answers_reads_while_the_results_service_is_away(gateway: Running) -> None:
    job_id = finished(gateway)
    pages = ["/leaderboard?suite=demo", "/jobs", "/overview", f"/jobs/{job_id}", "/datasets"]
    reads = [f"{BASE}/results", f"{BASE}/results/{job_id}", f"{BASE}/results/{job_id}/export?kind=items&format=jsonl"]
    live = {path: (await gateway.client.get(path)).text for path in reads}
    for path in [*pages, *reads]:
        answer = await gateway.client.get(path, headers=HTML)
        assert (answer.status_code, HEADER in answer.headers) == (200, False)
        assert SAID not in answer.text
    await gateway.stop_service("results")
    for path in pages:
        answer = await gateway.client.get(path, headers=HTML)
        assert (answer.status_code, answer.headers[HEADER]) == (200, AS_OF)
        assert SAID in answer.text
    began = time.monotonic()
    for path in reads:
        answer = await gateway.client.get(path)
        assert (answer.status_code, answer.headers[HEADER], answer.text) == (200, AS_OF, live[path])
    # It is known to be away: nobody waits for it again.
    assert time.monotonic() - began < 3
    part = await gateway.client.get(f"/jobs/{job_id}/items", headers=HTML | {"HX-Request": "true"})
    assert part.status_code == 200
    assert 'hx-target="#silence"' in part.text
    assert SAID in part.text
    ready = await gateway.client.get("/readyz")
    expected = {"ready": True, "scheduler": "serving", "results": "not serving", "replica": "serving"}
    assert (ready.status_code, ready.json()) == (200, expected)
    await gateway.start_service("results")
    async with asyncio.timeout(30):
        while HEADER in (answer := await gateway.client.get("/jobs", headers=HTML)).headers:
            assert answer.status_code == 200
    assert SAID not in answer.text


async def test_the_copy_takes_no_changes_and_does_not_say_that_something_is_unknown(gateway: Running) -> None:
    job_id = finished(gateway)
    await gateway.stop_service("results")
    noted = await gateway.client.put(
        f"{BASE}/results/{job_id}/items/sentiment/0/annotation", json={"verdict": "golden"}
    )
    assert (noted.status_code, HEADER in noted.headers) == (503, False)
    marked = await gateway.client.post(f"/jobs/{job_id}/mark", data={"mark": "invalidated", "reason": "x"})
    assert (marked.status_code, HEADER in marked.headers) == (503, False)
    unknown = await gateway.client.get(f"{BASE}/results/{uuid.uuid4()}")
    assert (unknown.status_code, unknown.json()["detail"][:19]) == (503, "The results service")


async def test_without_an_answer_of_the_copy_it_is_as_without_one() -> None:
    settings = Settings(call_timeout_s=1, replica=f"127.0.0.1:{free_port()}")
    async with running(settings=settings) as gateway:
        assert (await gateway.client.get(f"{BASE}/results")).status_code == 200
        await gateway.stop_service("results")
        answer = await gateway.client.get(f"{BASE}/results")
        assert (answer.status_code, answer.json()["detail"][:19]) == (503, "The results service")
        ready = await gateway.client.get("/readyz")
        assert (ready.status_code, ready.json()["ready"], "replica" in ready.json()) == (503, False, False)


def test_the_date_is_said_where_it_is_not_todays() -> None:
    now = datetime.now(UTC)
    assert Age(f"{now.date()}T08:15:42.125Z").clock == "08:15:42"
    assert Age(f"{now.date() - timedelta(1)}T23:59:59.000Z").clock == f"{now.date() - timedelta(1)} 23:59:59"
    assert Age().clock == ""
