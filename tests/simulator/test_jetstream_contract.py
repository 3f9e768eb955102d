"""The fake server answers as a real one does."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import nats.aio.client
import pytest

from services.bus import connect
from tests.nats_server import NatsServer
from tests.simulator import worlds
from tests.simulator.contract_script import Answers, Script
from tests.simulator.jetstream import FakeServer
from tests.simulator.loop import SimLoop


async def _ask_fake(loop: SimLoop, chance: Random) -> Answers:
    server = FakeServer(loop, lambda: 0.0005, chance.randrange)
    with patch.object(nats.aio.client, "TcpTransport", server.network.transport):
        bus = await connect("nats://127.0.0.1:1", "script")
        try:
            return await Script(bus.client).run()
        finally:
            await bus.close()


async def _ask(url: str) -> Answers:
    bus = await connect(url, "script")
    try:
        return await Script(bus.client).run()
    finally:
        await bus.close()


async def test_the_fake_server_answers_as_a_real_one(nats: NatsServer) -> None:
    real = dict(await _ask(nats.url))
    fake = dict(_simulated())
    assert fake.keys() == real.keys()
    differences = {label: (fake[label], real[label]) for label in real if fake[label] != real[label]}
    assert not differences, "\n".join(f"{k}: fake {f} real {r}" for k, (f, r) in differences.items())


def _simulated() -> Answers:
    """In a thread of its own, as this one has a running loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(worlds.run, 1, _ask_fake).result()


def test_the_script_can_fail() -> None:
    """A server that forgets a check is found out by the same script."""
    from tests.simulator.streams import Stream

    right = dict(worlds.run(1, _ask_fake))
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Stream, "check", lambda self, message, written: None)
        wrong = dict(worlds.run(1, _ask_fake))
    assert wrong["wrong"] != right["wrong"]
