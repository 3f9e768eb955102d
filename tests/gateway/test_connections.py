"""Connections that send no whole header, drip their bodies or do not read are closed and hold nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from services.gateway.http.connections import Crowd
from services.gateway.settings import Settings
from tests.gateway.gateway_server import Running, running

DEADLINE_S = 60
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def gateway() -> AsyncIterator[Running]:
    async with running(settings=Settings(requests_per_minute=10_000, header_timeout_s=1)) as started:
        yield started


async def connected(gateway: Running, data: bytes = b"") -> Wire:
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    return reader, writer


async def rest(wire: Wire) -> bytes:
    """What comes until the server closes; a reset does not take away what came before it."""
    told = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(DEADLINE_S):
            while part := await wire[0].read(65_536):
                told += part
    return told


async def test_five_hundred_half_open_connections_stop_nobody_and_are_closed(gateway: Running) -> None:
    half = [await connected(gateway, b"G") for _ in range(500)]
    for _ in range(5):
        assert (await asyncio.wait_for(gateway.client.get("/healthz"), DEADLINE_S)).status_code == 200
    ended = await asyncio.gather(*(rest(wire) for wire in half))
    assert all(one.startswith(b"HTTP/1.1 408 ") and b"Retry-After: " in one for one in ended if one)
    assert sum(bool(one) for one in ended) > 400
    for _, writer in half:
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "])
async def test_a_header_that_drips_ends_in_time(gateway: Running, begun: bytes) -> None:
    reader, writer = await connected(gateway, begun)

    async def drip() -> None:
        with contextlib.suppress(ConnectionError):
            while begun:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.1)

    dripping = asyncio.create_task(drip())
    assert (await rest((reader, writer))).startswith(b"HTTP/1.1 408 ")
    dripping.cancel()
    writer.close()


async def test_a_kept_connection_that_begins_a_second_header_ends_in_time(gateway: Running) -> None:
    wire = await connected(gateway, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
    told = await rest(wire)
    assert told.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in told
    wire[1].close()


async def test_a_kept_connection_that_is_idle_stays(gateway: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reader, writer = await connected(gateway, request)
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
    await asyncio.sleep(2.5)
    writer.write(request)
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_the_rest_of_a_body_that_was_refused_does_not_hold_the_connection(gateway: Running) -> None:
    head = b"POST /api/v1/benchmarking/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n"
    wire = await connected(gateway, head)
    assert (await rest(wire)).startswith(b"HTTP/1.1 413 ")
    wire[1].close()


async def test_pipelined_requests_are_answered_in_order(gateway: Running) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wire = await connected(gateway, 50 * one + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert (await rest(wire)).count(b"HTTP/1.1 200 ") == 51
    wire[1].close()


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\r\n\r\n", b"GET /?" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
async def test_what_is_not_http_is_refused_in_json(gateway: Running, sent: bytes) -> None:
    reader, writer = await connected(gateway, sent)
    head, _, body = (await rest((reader, writer))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/json" in head
    assert "longer than 16 KiB" in json.loads(body)["detail"]
    writer.close()


async def test_an_address_has_so_many_connections_and_no_more() -> None:
    settings = Settings(requests_per_minute=10_000, connections_per_address=3, header_timeout_s=30)
    async with running(settings=settings) as gateway:
        held = [await connected(gateway) for _ in range(3)]
        over = await rest(await connected(gateway))
        assert over.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: " in over
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        for _ in range(100):
            with contextlib.suppress(Exception):
                if (await gateway.client.get("/healthz")).status_code == 200:
                    break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("closed connections still count")


async def test_a_client_that_reads_nothing_is_given_up_and_a_slow_one_is_not() -> None:
    crowd = Crowd(stall_s=0.5)
    sent = asyncio.Event()

    class Writing(crowd.protocol()):  # type: ignore[misc]
        """Sends ten megabytes to anybody."""

        def __init__(self) -> None:
            self.flow = None
            self.cycle = None
            self.loop = asyncio.get_running_loop()
            self.connections: set[object] = set()
            self.timeout_keep_alive_task = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            self.transport = transport
            transport.write(bytes(10_000_000))

        def pause_writing(self) -> None:
            self._await_reader(self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._unset_stall()

        def connection_lost(self, exc: Exception | None) -> None:
            sent.set()

    server = await asyncio.get_running_loop().create_server(Writing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    slow = 0
    while slow < 9_000_000 and not sent.is_set():
        slow += len(await reader.read(400_000))
        await asyncio.sleep(0.05)
    assert slow >= 9_000_000, "a slow reader was cut off"
    writer.close()
    await asyncio.wait_for(sent.wait(), DEADLINE_S)
    sent.clear()
    _, deaf = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    await asyncio.wait_for(sent.wait(), DEADLINE_S)
    deaf.close()
    server.close()
