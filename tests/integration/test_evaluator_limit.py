"""One limited endpoint, several evaluators and users: calls stay within its limit and are shared fairly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from services.bus import LIMITS
from tests.integration.evaluator_rig import Link, Rig, open_rig, running, settings, stub_endpoint, until
from tests.nats_server import NatsServer
from tests.servers.limited_server import LimitedServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from touchstone.v1 import unit_pb2

pytestmark = pytest.mark.stack

USERS = ("ada", "bob", "eve")
UNIT = 8


async def jobs_of(rig: Rig, users: Sequence[str], items: int) -> None:
    """A job for each user, under a model of the same name, its units released in turn with the others'."""
    ids = {user: await rig.job() for user in users}
    for number, start in enumerate(range(0, items, UNIT)):
        for user, job_id in ids.items():
            unit = rig.unit(job_id, number, start, min(start + UNIT, items), model=user)
            unit.owner = user
            await rig.release(unit)


def server(calls: int, window_s: float) -> LimitedServer:
    return LimitedServer(Behaviour(models=USERS, latency_s=0.02), calls=calls, window_s=window_s)


async def test_six_evaluators_share_a_limit_between_three_users_and_lose_nothing(nats: NatsServer) -> None:
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(open_rig(nats))
        # So few that a busy machine keeps up: the limit, and not the machine, is to be what holds the calls back.
        stub = await stack.enter_async_context(server(158, 15.0))
        endpoint = stub_endpoint(stub.url, requests_per_minute=600, concurrency=4)
        for number in range(6):
            options = settings(f"evaluator-{number}")
            await stack.enter_async_context(running(nats, [endpoint], options))
        await jobs_of(rig, USERS, 120)
        await rig.until_acknowledged(120)
        shares = stub.shares(USERS, 30.0)
        items = await rig.items()
    # Most of the limit, after a start at which nobody knows the others. Permits that one of the six does not use would
    # cost a sixth of all 300.
    assert sum(shares.values()) >= 260
    equal = sum(shares.values()) / len(USERS)
    assert all(abs(share - equal) <= 5 for share in shares.values()), shares
    assert stub.refused <= 0.01 * len(stub.answered)
    assert len(items) == len(stub.answered) == 3 * 120
    assert all(item.error == "" for item in items)


async def test_a_user_alone_has_the_whole_limit(nats: NatsServer) -> None:
    # In so short a window the network's jitter counts for more than in a minute.
    async with open_rig(nats) as rig, server(110, 1.0) as stub:
        endpoint = stub_endpoint(stub.url, requests_per_minute=6000, concurrency=16)
        async with running(nats, [endpoint]):
            await jobs_of(rig, USERS[:1], 200)
            await rig.until_acknowledged()
    assert stub.refused <= 2
    took = stub.answered[-1][0] - stub.answered[0][0]
    assert 1.9 < took < 4, "half of the limit, as beside one other user, would take four seconds"


async def test_without_nats_no_calls_go_out_beyond_the_permits_in_hand(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, server(1000, 1.0) as stub, Link(nats) as link:
        endpoint = stub_endpoint(stub.url, requests_per_minute=1200, concurrency=32)
        async with running(nats, [endpoint], url=link.url):
            await jobs_of(rig, USERS[:1], 40)
            await until(lambda: len(stub.answered) >= 10)
            link.cut()
            at_the_cut = len(stub.answered)
            await asyncio.sleep(1.5)  # What it held has gone out.
            held = len(stub.answered)
            await asyncio.sleep(1.0)
            assert len(stub.answered) == held
            link.mend()
            await rig.until_acknowledged()
    assert held <= at_the_cut + 20 * 0.6


async def test_a_second_evaluator_finds_the_first_ones_calls_in_the_record(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, server(1000, 1.0) as stub:
        endpoint = stub_endpoint(stub.url, requests_per_minute=600, concurrency=8)
        async with running(nats, [endpoint]):
            await jobs_of(rig, USERS[:1], 5)
            await rig.until_acknowledged()
        async with running(nats, [endpoint], settings("evaluator-2")):
            await jobs_of(rig, USERS[1:2], 5)
            await rig.until_acknowledged()
        assert await rig.bus.kv_get(LIMITS, "stub") is not None
    times = [at for at, _ in stub.answered]
    # Five calls of each, a tenth of a second apart. A busy machine may bring two closer, by making the first one late.
    assert min(times[4] - times[0], times[9] - times[5]) > 0.2
    assert times[5] - times[4] > 0.05


async def test_a_call_that_is_tried_again_takes_a_permit_of_its_own(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, server(2, 0.5) as stub:
        # The provider allows less than was configured: 4 calls a second instead of 10.
        endpoint = stub_endpoint(stub.url, requests_per_minute=600, concurrency=4)
        async with running(nats, [endpoint]):
            started = time.monotonic()
            await jobs_of(rig, USERS[:1], 6)
            await rig.until_acknowledged()
            took = time.monotonic() - started
        items = await rig.items()
    assert stub.refused
    assert len(items) == 6
    assert all(item.error == "" for item in items)
    assert sum(item.calls for item in items) == len(stub.answered) + stub.refused
    assert took > 1.0


async def test_a_limited_endpoint_serves_jobs_without_an_owner(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, server(100, 1.0) as stub:
        async with running(nats, [stub_endpoint(stub.url, requests_per_minute=6000)]):
            unit: unit_pb2.Unit = rig.unit(await rig.job(), 0, 0, 8, model="ada")
            await rig.release(unit)
            await rig.until_acknowledged()
        assert len(await rig.items()) == 8


class Crowded(OpenAIServer):
    """Refuses what comes while four calls are under way."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.refused = 0

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if self.in_flight > 4:
            self.refused += 1
            fault = Fault("429", message="too many at once")
            return web.json_response(self.error(fault), status=429, headers={"Retry-After": "0.05"})
        return await super()._respond(request, body)


async def test_an_endpoint_that_refuses_calls_is_sent_fewer_at_once(nats: NatsServer) -> None:
    async with open_rig(nats) as rig, Crowded(Behaviour(models=USERS, latency_s=0.05)) as stub:
        async with running(nats, [stub_endpoint(stub.url, concurrency=32)]):
            await jobs_of(rig, USERS[:1], 160)
            await rig.until_acknowledged()
        items = await rig.items()
    assert len(items) == 160
    assert all(item.error == "" for item in items)
    # At first all 32 go out and most are refused; later only what one more call at once costs now and then.
    assert 0 < stub.refused < 100
