"""The event stream that all pages of a browser share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import httpx

from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import job_pb2

DEADLINE_S = 60
_BEFORE = timedelta(seconds=5)


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%H:%M:%S")


@asynccontextmanager
async def following(gateway: Running, *jobs: job_pb2.Job) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
    """The events of a stream that follows these jobs."""
    query = {"job": [job.job_id for job in jobs]}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as client,
        client.stream("GET", f"{gateway.url}/events", params=query) as stream,
        asyncio.timeout(DEADLINE_S),
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in stream.headers, "compressed events would wait for each other"
        yield _events(stream)


async def _events(stream: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in stream.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


async def test_marks_change_with_what_pages_show(gateway: Running) -> None:
    world = gateway.world
    world.add(spec("qwen2.5:7b", "demo"), "local")
    async with following(gateway) as events:

        async def other(name: str, than: str) -> dict[str, Any]:
            async for event, told in events:
                if event == "pulse" and told["marks"].get(name, than) != than:
                    return told
            raise AssertionError("the stream ended")

        told = await other("queue", "")
        assert told["silence"] == ""
        assert "<b>1</b> queued" in told["parts"]["#queue"]
        waiting = world.add(spec("phi4-mini", "demo"), "local")
        added = await other("jobs", told["marks"]["jobs"])
        assert "<b>2</b> queued" in added["parts"]["#queue"]
        assert ">2<" in added["parts"]["#waiting-count"]
        settled = await other("jobs", added["marks"]["jobs"])
        assert settled["marks"]["queue"] == added["marks"]["queue"], "stored lists are asked for once more"
        waiting.spec.priority = job_pb2.PRIORITY_LOW
        await other("queue", settled["marks"]["queue"])
        asked = len(world.queued)
        async with following(gateway) as second, following(gateway) as third:
            for more in (second, third):
                for _ in range(3):
                    await anext(more)
        assert len(world.queued) - asked <= 2 * 3 + 2, "three streams ask as often as one"


async def test_each_job_is_followed_to_its_end_and_an_unknown_one_is_left_out(gateway: Running) -> None:
    world = gateway.world
    first, second = (world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id) for _ in range(2))
    unknown = job_pb2.Job(job_id="0b5c")
    world.advance(first.job_id, 150)
    got: dict[str, dict[str, str]] = {first.job_id: {}, second.job_id: {}}
    rows = 0
    async with following(gateway, first, second, unknown) as events:
        async for event, told in events:
            if event != "job":
                continue
            got[told["job"]] |= told["parts"]
            mine = got[first.job_id]
            rows += "#items[data-live]" in told["parts"] and told["job"] == first.job_id
            counted = mine.get("#count-all[data-follows]", "")
            if 'data-n="150"' in counted and first.progress.items_done == 150:
                world.advance(first.job_id, 250)
            if 'data-n="400"' in counted and first.progress.items_done == 400:
                assert rows == 1, "rows that fill a page stay, and their counts follow"
                assert "#count-errors[data-follows]" in mine
                world.finish(first.job_id)
            if told["done"]:
                assert told["job"] == first.job_id
                assert rows == 2
                assert "completed" in mine["#job-head"]
                assert "running" in got[second.job_id]["#job-head"]
                break


async def test_a_silent_service_is_named_with_the_time_of_the_figures(gateway: Running) -> None:
    async with following(gateway) as events:
        for service, name in (("scheduler", "the scheduler"), ("results", "the results service")):
            at = _time((await anext(events))[1]["at"])
            await gateway.stop_service(service)
            silence = ""
            while not silence:
                silence = (await anext(events))[1]["silence"]
            assert silence.startswith(f"Reconnecting to {name}. Figures are from ")
            # An event is sent after its figures are read.
            assert _time(silence.removesuffix(" UTC.").split(" from ")[1]) >= at - _BEFORE
            await gateway.start_service(service)
            while silence:
                silence = (await anext(events))[1]["silence"]
