"""Services and a NATS cluster as on several hosts: a node is gone, NATS is lost and found, and the lead moves."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from pathlib import Path

import httpx
import pytest

from deploy.local import health
from tests.hosts.processes import SERVICE_TOKEN, SERVICES, hosts
from tests.nats_server import NatsCluster
from touchstone.v1 import job_pb2
from touchstone_client import AsyncClient, ClientError, UnreachableError, suite_spec

pytestmark = pytest.mark.stack

ITEMS = 1600
MODELS = itertools.cycle(("majority", "random", "bag-of-words"))
MOST_CHANGE_S = 15.0


async def job(client: AsyncClient) -> str:
    made = await client.run(suite_spec("demo", endpoint="baseline", model=next(MODELS)))
    return str(made.job_id)


async def completed(client: AsyncClient, *jobs: str) -> None:
    """Every item of the jobs is stored once."""
    for job_id in jobs:
        ended = await client.wait(job_id, timeout_s=180)
        assert ended.state == job_pb2.Job.STATE_COMPLETED, ended
        items = [(item.task, item.result.item, item.result.repeat) async for item in client.items(job_id)]
        assert len(items) == len(set(items)) == ITEMS


async def test_with_one_node_of_nats_gone_jobs_run_and_every_service_starts_anew(
    cluster: NatsCluster, tmp_path: Path
) -> None:
    async with hosts(tmp_path / "hosts", cluster) as made, AsyncClient(made.client(made.token())) as client:
        jobs = [await job(client) for _ in range(3)]
        cluster.nodes[0].kill()
        await completed(client, *jobs)
        for name in SERVICES:
            assert made.running(name), made.log(name)[-3000:]
            made.end(name, signal.SIGTERM)
            made.start(name)
        made.start("evaluator-2")
        await made.until_ready(*SERVICES, "evaluator-2")
        await completed(client, await job(client))
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{made.page_url()}/readyz")).json()["nats"] == "serving"


async def test_services_without_nats_say_so_and_come_back_by_themselves(cluster: NatsCluster, tmp_path: Path) -> None:
    async with hosts(tmp_path / "hosts", cluster) as made, AsyncClient(made.client(made.token())) as client:
        done = await job(client)
        await completed(client, done)
        # The node that is left is connected to, and of no use.
        for node in cluster.nodes[:2]:
            node.kill()
        lost = await made.until_ready(*SERVICES, ready=False, timeout_s=30)
        # What is stored can be read, by those whose token need not be looked up in NATS.
        assert await made.ready("results", "touchstone.v1.ResultsService")
        async with AsyncClient(made.client(SERVICE_TOKEN)) as service:
            assert len([item async for item in service.items(done)]) == ITEMS
        with pytest.raises(UnreachableError):
            await client.queue()
        for node in cluster.nodes[:2]:
            node.begin()
        back = await made.until_ready(*SERVICES)
        assert all(made.running(name) for name in SERVICES)
        await completed(client, await job(client))
    print(f"without NATS: not ready after {lost:.1f} s, ready {back:.1f} s after it began again")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_calls_follow_the_lead(cluster: NatsCluster, tmp_path: Path, how: signal.Signals) -> None:
    async with hosts(tmp_path / "hosts", cluster) as made:
        token = made.token()
        failed: dict[str, list[float]] = {"client": [], "gateway": []}
        calls = {"client": 0, "gateway": 0}
        longest = {"client": 0.0, "gateway": 0.0}
        stop = asyncio.Event()

        async def ask(name: str, once: httpx.AsyncClient | AsyncClient) -> None:
            while not stop.is_set():
                began = time.monotonic()
                try:
                    if isinstance(once, AsyncClient):
                        await once.queue()
                    else:
                        (await once.get("/api/v1/benchmarking/queue")).raise_for_status()
                except (ClientError, httpx.HTTPError):
                    failed[name].append(began)
                calls[name] += 1
                longest[name] = max(longest[name], time.monotonic() - began)
                await asyncio.sleep(0.02)

        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            AsyncClient(made.client(token)) as client,
            httpx.AsyncClient(base_url=made.page_url(), headers=bearer, trust_env=False, timeout=60) as http,
        ):
            asking = [asyncio.create_task(ask("client", client)), asyncio.create_task(ask("gateway", http))]
            first = await made.leader()
            await asyncio.sleep(2)
            assert failed == {"client": [], "gateway": []}
            killed = time.monotonic()
            made.end(first, how)
            assert await made.leader() != first
            led = time.monotonic()
            await asyncio.sleep(2)
            made.start(first)
            await made.until_ready(first)
            assert not await made.ready(first, health.SCHEDULER), "it is a standby now"
            await asyncio.sleep(2)
            stop.set()
            await asyncio.gather(*asking)
        print(
            f"{how.name}: another led after {led - killed:.1f} s, longest call {longest}, failed of {calls}: {failed}"
        )
        assert led - killed < MOST_CHANGE_S
        assert failed == {"client": [], "gateway": []}
        assert all(most < MOST_CHANGE_S for most in longest.values())
