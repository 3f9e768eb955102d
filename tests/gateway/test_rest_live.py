"""Waiting for a job: long polls and server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.gateway.settings import Settings
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_rest_results import BASE, get
from touchstone.v1 import job_pb2


def started(gateway: Running) -> job_pb2.Job:
    return gateway.world.start(gateway.world.add(spec("qwen2.5:7b", "demo"), "local").job_id)


async def test_a_waiting_read_answers_as_soon_as_the_job_changes(gateway: Running) -> None:
    job = started(gateway)
    before = await get(gateway, f"/results/{job.job_id}")
    began = time.monotonic()
    waiting = asyncio.create_task(get(gateway, f"/results/{job.job_id}?wait=60&since={before['version']}"))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    gateway.world.advance(job.job_id, 40)
    after = await waiting
    assert time.monotonic() - began < 50
    assert (before["progress"]["items_done"], after["progress"]["items_done"]) == (0, 40)
    assert before["version"] != after["version"]


async def test_a_waiting_read_ends_with_its_time_or_at_once_where_there_is_news(gateway: Running) -> None:
    job = started(gateway)
    state = await get(gateway, f"/results/{job.job_id}?wait=1")
    began = time.monotonic()
    assert (await get(gateway, f"/results/{job.job_id}?wait=1&since={state['version']}"))["version"] == state["version"]
    assert 0.9 < time.monotonic() - began < 50
    began = time.monotonic()
    await get(gateway, f"/results/{job.job_id}?wait=60&since=older")
    gateway.world.finish(job.job_id)
    done = await get(gateway, f"/results/{job.job_id}?wait=60")
    await get(gateway, f"/results/{job.job_id}?wait=60&since={done['version']}")
    assert time.monotonic() - began < 50
    assert (done["status"], done["score"]["mean"]) == ("completed", 0.795)


async def test_a_waiting_read_has_the_metrics_when_the_job_finishes(gateway: Running) -> None:
    job = started(gateway)
    waiting = asyncio.create_task(get(gateway, f"/results/{job.job_id}?wait=30"))
    await asyncio.sleep(0.2)
    gateway.world.finish(job.job_id)
    done = await waiting
    assert (done["status"], done["score"]["mean"]) == ("completed", 0.795)


async def test_waiting_reads_are_capped_per_user_and_do_not_hold_up_the_servers_end() -> None:
    async with running(settings=Settings(requests_per_minute=1000, waits_per_user=1)) as gateway:
        job = started(gateway)
        address = f"{BASE}/results/{job.job_id}?wait=60"
        both = {asyncio.create_task(gateway.client.get(address)) for _ in range(2)}
        (second,), (first,) = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        refused = await second
        assert (refused.status_code, refused.json()["detail"][:33]) == (429, "1 waiting read is open, the most ")
        assert (await gateway.client.get(f"{BASE}/results/{job.job_id}")).status_code == 200
        gateway.shutdown.set()
        async with asyncio.timeout(50):
            assert (await first).json()["status"] == "running"


async def test_events_tell_each_state_and_end_with_done(gateway: Running) -> None:
    job = started(gateway)
    async with (
        httpx.AsyncClient(trust_env=False, timeout=60) as client,
        client.stream("GET", f"{gateway.url}{BASE}/results/{job.job_id}/events") as stream,
        asyncio.timeout(60),
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = _events(stream)
        first, state = await anext(events)
        assert (first, state["status"], state["progress"]["items_done"]) == ("job", "running", 0)
        gateway.world.advance(job.job_id, 40)
        again, state = await anext(events)
        assert (again, state["progress"]["items_done"]) == ("job", 40)
        gateway.world.finish(job.job_id, job_pb2.Job.STATE_FAILED, "the endpoint is gone")
        last, state = await anext(events)
        assert (last, state["status"], state["error"]) == ("done", "failed", "the endpoint is gone")
        assert await anext(events, None) is None


async def _events(stream: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in stream.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def test_event_streams_are_capped_per_user() -> None:
    async with running(settings=Settings(requests_per_minute=1000, streams_per_user=1)) as gateway:
        job = started(gateway)
        address = f"{gateway.url}{BASE}/results/{job.job_id}/events"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client, client.stream("GET", address) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: job"
            refused = await gateway.client.get(address)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")


@pytest.mark.parametrize(
    ("address", "sign"), [(f"{BASE}/results/{{}}/events", ": still here"), ("/events?job={}", "event: pulse")]
)
async def test_a_stream_without_news_shows_that_it_lives_and_ends_with_its_age(address: str, sign: str) -> None:
    settings = Settings(requests_per_minute=1000, heartbeat_s=0.05, stream_max_age_s=1.5)
    async with running(settings=settings) as gateway:
        job, began = started(gateway), time.monotonic()
        url = gateway.url + address.format(job.job_id)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client, client.stream("GET", url) as stream:
            lines = [line async for line in stream.aiter_lines()]
        assert lines.count(sign) >= 2
        assert "event: done" not in lines
        assert 1.5 <= time.monotonic() - began < 30


async def test_a_silent_scheduler_does_not_end_a_wait(gateway: Running) -> None:
    job = started(gateway)
    before = await get(gateway, f"/results/{job.job_id}")
    waiting = asyncio.create_task(get(gateway, f"/results/{job.job_id}?wait=60&since={before['version']}"))
    await asyncio.sleep(0.2)
    await gateway.stop_service("scheduler")
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await gateway.start_service("scheduler")
    gateway.world.advance(job.job_id, 40)
    assert (await waiting)["progress"]["items_done"] == 40
