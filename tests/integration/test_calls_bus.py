"""Calls over a real NATS: bodies and answers of any size, and either side notices that the other is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services import bus
from services.bus import calls, contract
from services.errors import LimitReachedError, UnavailableError
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer
from touchstone.v1.call_pb2 import Call

CALL = Call(call_id="1", endpoint="local", model="m")
MOST = 4 * 1024 * 1024


@asynccontextmanager
async def both(nats: NatsServer, handle: calls.Handle, most: int = 10) -> AsyncIterator[tuple[bus.Bus, bus.Bus]]:
    """The gateway's connection and an evaluator's that serves calls."""
    asking = await bus.connect(nats.url, "gateway", timeout_s=10)
    serving = await bus.connect(nats.url, "evaluator", timeout_s=10)
    sessions = bus.CallSessions(serving, handle, most, MOST)
    task = asyncio.create_task(bus.serve_calls(sessions, ["local"]))
    await until(lambda: nats.hears(contract.call_subject("local")))
    yield asking, serving
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await sessions.end(0)
    await asking.close()
    await serving.close()


async def echo(call: Call, body: bytes, outbox: bus.Outbox) -> None:
    outbox.begin(200, {"x-model": call.model})
    await outbox.write(body)


@pytest.mark.parametrize("size", [0, 10, 3 * 1024 * 1024])
async def test_a_body_and_its_answer_arrive_whole(nats: NatsServer, size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    async with both(nats, echo) as (asking, _), bus.make_call(asking, CALL, body) as answer:
        assert (answer.status, answer.headers) == (200, {"x-model": "m"})
        assert b"".join([piece async for piece in answer.pieces]) == body


async def test_without_an_evaluator_it_is_unavailable_at_once(nats: NatsServer) -> None:
    asking = await bus.connect(nats.url, "gateway", timeout_s=10)
    with pytest.raises(UnavailableError, match="No running evaluator serves endpoint local"):
        async with asyncio.timeout(30), bus.make_call(asking, CALL, b""):
            pass
    await asking.close()


async def test_an_answer_that_nobody_takes_is_not_held() -> None:
    outbox = bus.Outbox()
    outbox.begin(200, {})
    writing = asyncio.create_task(outbox.write(b"x" * MOST))
    assert (await outbox.take())[0] == "head"
    taken = 0
    while taken < MOST:
        await asyncio.sleep(0)  # The writer goes on as far as it may.
        assert outbox._size <= 2 * calls.PIECE_BYTES
        assert not writing.done() or taken >= MOST - 2 * calls.PIECE_BYTES
        kind, data = await outbox.take()
        assert kind == "piece"
        taken += len(data)
    await writing


async def test_a_caller_that_leaves_ends_the_work(nats: NatsServer) -> None:
    ended = asyncio.Event()

    async def hanging(call: Call, body: bytes, outbox: bus.Outbox) -> None:
        outbox.begin(200, {})
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with both(nats, hanging) as (asking, _):
        async with bus.make_call(asking, CALL, b""):
            pass
        async with asyncio.timeout(10):
            await ended.wait()
        assert ended.is_set()


async def test_a_gateway_that_goes_is_noticed_and_a_slow_client_is_not_cut_off(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_ANSWER_S", 2.0)
    monkeypatch.setattr(calls, "_HERE_S", 0.2)
    ended = asyncio.Event()

    async def long(call: Call, body: bytes, outbox: bus.Outbox) -> None:
        outbox.begin(200, {})
        try:
            await outbox.write(b"x" * MOST)
        finally:
            ended.set()

    async with both(nats, long) as (asking, _), bus.make_call(asking, CALL, b"") as answer:
        await anext(answer.pieces)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):  # The client reads nothing for longer than an answer may take.
                await ended.wait()
        await anext(answer.pieces)
        await asking.close()
        async with asyncio.timeout(20):
            await ended.wait()


async def test_an_evaluator_that_goes_is_noticed(nats: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_ANSWER_S", 3.0)

    async def hanging(call: Call, body: bytes, outbox: bus.Outbox) -> None:
        outbox.begin(200, {})
        await asyncio.get_running_loop().create_future()

    async with both(nats, hanging) as (asking, serving), bus.make_call(asking, CALL, b"") as answer:
        await serving.close()
        with pytest.raises(UnavailableError, match="does not answer any more"):
            async with asyncio.timeout(30):
                await anext(answer.pieces)


async def test_more_calls_than_can_be_made_are_refused(nats: NatsServer) -> None:
    async def hanging(call: Call, body: bytes, outbox: bus.Outbox) -> None:
        outbox.begin(200, {})
        await asyncio.get_running_loop().create_future()

    async with both(nats, hanging, most=1) as (asking, _), bus.make_call(asking, CALL, b""):
        with pytest.raises(LimitReachedError, match="as many calls as it can"):
            async with bus.make_call(asking, CALL, b""):
                pass


async def test_a_handler_that_fails_without_an_answer_is_noticed(nats: NatsServer) -> None:
    async def failing(call: Call, body: bytes, outbox: bus.Outbox) -> None:
        raise ValueError("planted")

    async with both(nats, failing) as (asking, _):
        with pytest.raises(UnavailableError):
            async with bus.make_call(asking, CALL, b""):
                pass
