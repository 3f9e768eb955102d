"""Requests over a connection that breaks while they wait."""

from __future__ import annotations

import asyncio
import time

import pytest
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NoAnswerError

from services import bus
from services.errors import UnavailableError
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsServer


async def test_a_request_whose_answer_went_down_with_nats_ends_soon_after_the_reconnect(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    silent = await connection.client.subscribe("silent", cb=_ignore)
    try:
        asking = asyncio.create_task(connection.client.request("silent", timeout=600))
        await connection.client.flush()
        nats.kill()
        nats.restart()
        began = time.monotonic()
        with pytest.raises(NoAnswerError):
            await asking
        assert time.monotonic() - began < 200
        await silent.unsubscribe()
    finally:
        await connection.close()


async def test_a_request_sent_while_nats_was_away_is_answered_after_the_reconnect(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    await connection.client.subscribe("echo", cb=_echo)
    try:
        nats.kill()
        await until(lambda: not connection.connected)
        asking = asyncio.create_task(connection.client.request("echo", b"hello", timeout=60))
        nats.restart()
        assert (await asking).data == b"hello"
    finally:
        await connection.close()


async def _ignore(msg: Msg) -> None:
    pass


async def _echo(msg: Msg) -> None:
    await msg.respond(msg.data)


async def test_connecting_where_nothing_listens_ends_with_a_sentence() -> None:
    with pytest.raises(UnavailableError, match="NATS does not answer at 127"):
        await bus.connect("nats://127.0.0.1:1", "test", timeout_s=1)
