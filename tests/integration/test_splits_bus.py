"""Splits over a real NATS: pieces come in order, and either side notices that the other is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services import bus
from services.bus import contract
from services.errors import InvalidRequestError, LimitReachedError, NotFoundError, TouchstoneError, UnavailableError
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer
from touchstone.v1 import suite_pb2
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest

REQUEST = CreateHubDatasetRequest(source=suite_pb2.DataSource(dataset="someone/rows", split="test"), limit=3)
SOURCE = suite_pb2.DataSource(dataset="someone/rows", config="default", split="test", revision="abc")


async def three(request: CreateHubDatasetRequest) -> bus.Split:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(request.limit):
            yield b"%d" % number * 700_000

    return bus.Split(SOURCE, pieces())


@asynccontextmanager
async def both(nats: NatsServer, open_split: bus.OpenSplit) -> AsyncIterator[bus.Bus]:
    """A connection, while an evaluator on another serves splits."""
    asking = await bus.connect(nats.url, "results", timeout_s=10)
    serving = await bus.connect(nats.url, "evaluator", timeout_s=10)
    task = asyncio.create_task(bus.serve_splits(serving, open_split))
    await until(lambda: nats.hears(contract.SPLITS))
    yield asking
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asking.close()
    await serving.close()


async def test_a_split_arrives_in_order_with_its_source(nats: NatsServer) -> None:
    async with both(nats, three) as asking, bus.read_split(asking, REQUEST) as split:
        assert split.source == SOURCE
        whole = b"".join([piece async for piece in split.pieces])
    assert whole == b"".join(b"%d" % number * 700_000 for number in range(3))


async def test_without_an_evaluator_it_is_unavailable_at_once(nats: NatsServer) -> None:
    asking = await bus.connect(nats.url, "results", timeout_s=10)
    with pytest.raises(UnavailableError, match="No evaluator"):
        async with asyncio.timeout(60), bus.read_split(asking, REQUEST):
            pass
    await asking.close()


@pytest.mark.parametrize("error", [NotFoundError("no such split"), InvalidRequestError("bad"), UnavailableError("x")])
async def test_a_refusal_is_what_the_evaluator_raised(nats: NatsServer, error: TouchstoneError) -> None:
    async def refuse(request: CreateHubDatasetRequest) -> bus.Split:
        raise error

    async with both(nats, refuse) as asking:
        with pytest.raises(type(error), match=error.message):
            async with bus.read_split(asking, REQUEST):
                pass


async def test_a_failure_midway_ends_the_pieces_with_an_error(nats: NatsServer) -> None:
    async def fail(request: CreateHubDatasetRequest) -> bus.Split:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            raise ValueError

        return bus.Split(SOURCE, pieces())

    async with both(nats, fail) as asking, bus.read_split(asking, REQUEST) as split:
        assert await anext(split.pieces) == b"first"
        with pytest.raises(UnavailableError, match="log has the details"):
            await anext(split.pieces)


async def test_the_evaluator_is_told_when_no_more_is_wanted(nats: NatsServer) -> None:
    ended = asyncio.Event()

    async def endless(request: CreateHubDatasetRequest) -> bus.Split:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"more"
            finally:
                ended.set()

        return bus.Split(SOURCE, pieces())

    async with both(nats, endless) as asking:
        async with bus.read_split(asking, REQUEST) as split:
            assert await anext(split.pieces) == b"more"
        await asyncio.wait_for(ended.wait(), 30)


async def test_a_third_at_once_is_told_to_come_back(nats: NatsServer) -> None:
    async with (
        both(nats, three) as asking,
        bus.read_split(asking, REQUEST),
        bus.read_split(asking, REQUEST),
    ):
        with pytest.raises(LimitReachedError):
            async with bus.read_split(asking, REQUEST):
                pass
