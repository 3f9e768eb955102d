"""Deleted keys stay deleted when NATS is killed, and so do the values that a key had before its last one."""

from __future__ import annotations

import asyncio
import random

import pytest
from nats.aio.msg import Msg

from services import bus
from tests.nats_server import NatsServer
from tests.waiting import answered, until

MARKER_S = 1
"""Instead of the minute for which a deletion's marker stays."""


@pytest.fixture
def short_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.bus.key_values._MARKER_S", MARKER_S)


@pytest.mark.stack
@pytest.mark.usefixtures("short_markers")
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_kill_of_nats_brings_a_deleted_key_back(nats: NatsServer, seed: int) -> None:
    rng = random.Random(seed)
    values: dict[str, bytes | None] = {}
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(1 << 28)
    for _ in range(4):
        for step in range(12):
            kept = [key for key, value in values.items() if value is not None]
            if kept and rng.random() < 0.5:
                key = rng.choice(kept)
                await connection.kv_delete(bus.WEBHOOKS, key)
                values[key] = None
            else:
                key = rng.choice([*kept, f"hook.{len(values)}"])
                values[key] = f"{step}".encode()
                await connection.kv_put(bus.WEBHOOKS, key, values[key] or b"")
        # Some markers have gone by the time of the kill, some go after it.
        await asyncio.sleep(rng.choice((0, 1.5 * MARKER_S)))
        await connection.close()
        nats.kill()
        nats.restart()
        connection = await bus.connect(nats.url, "test")
        await asyncio.sleep(1.5 * MARKER_S)
        found = {key: msg.data async for key, msg in connection.kv_all(bus.WEBHOOKS)}
        assert found == {key: value for key, value in values.items() if value is not None}
    await connection.close()


@pytest.mark.stack
@pytest.mark.usefixtures("short_markers")
async def test_a_key_that_is_gone_after_a_kill_amid_deletions_stays_gone(nats: NatsServer) -> None:
    """NATS stores a marker and then removes the value: in about every fourth round the kill comes in between."""
    rng = random.Random(3)
    for round_ in range(12):
        connection = await bus.connect(nats.url, "test")
        await connection.ensure(1 << 28)
        keys = [f"hook.{round_}.{number}" for number in range(40)]
        await asyncio.gather(*(connection.kv_put(bus.WEBHOOKS, key, b"v" * 300) for key in keys))
        deletions = [asyncio.create_task(connection.kv_delete(bus.WEBHOOKS, key)) for key in keys]
        await asyncio.sleep(rng.uniform(0, 0.04))
        nats.kill()
        for deletion in deletions:
            deletion.cancel()
        await asyncio.gather(*deletions, connection.close(), return_exceptions=True)
        nats.restart()
        connection = await bus.connect(nats.url, "test")
        there = {key async for key, _ in connection.kv_all(bus.WEBHOOKS, f"hook.{round_}.*")}
        await asyncio.sleep(2.5 * MARKER_S)
        assert {key async for key, _ in connection.kv_all(bus.WEBHOOKS, f"hook.{round_}.*")} == there
        await connection.close()


@pytest.mark.usefixtures("short_markers")
async def test_the_marker_that_goes_comes_after_one_that_stays(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(1 << 28)
    heard: list[Msg] = []

    async def hear(msg: Msg) -> None:
        heard.append(msg)

    await connection.kv_put(bus.WEBHOOKS, "hook", b"value")
    await connection.kv_watch(bus.WEBHOOKS, "hook", hear)
    await connection.kv_delete(bus.WEBHOOKS, "hook")
    await until(lambda: len(heard) == 2)
    assert ["Nats-TTL" in (msg.headers or {}) for msg in heard] == [False, True]

    async def stored() -> int:
        return (await connection.js.stream_info(f"KV_{bus.WEBHOOKS}")).state.messages

    await answered(stored, lambda count: count == 0)
    await connection.close()


async def test_an_earlier_versions_streams_get_the_settings_that_keep_what_is_stored(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(1 << 28)
    for stream, changes in (("KV_JOBS", {"max_msgs_per_subject": 5}), (bus.RESULTS, {"max_age": 7 * 24 * 3600})):
        config = (await connection.js.stream_info(stream)).config
        await connection.js.update_stream(config.evolve(**changes))
    await connection.ensure(1 << 28)
    assert (await connection.js.stream_info("KV_JOBS")).config.max_msgs_per_subject == -1
    assert not (await connection.js.stream_info(bus.RESULTS)).config.max_age
    await connection.close()


async def test_keys_that_vanish_while_they_are_listed_are_no_failure(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(1 << 28)
    for number in range(600):
        await connection.kv_put(bus.WEBHOOKS, f"hook.{number}", b"value")
    found: set[str] = set()
    async with asyncio.timeout(30):
        async for key, _ in connection.kv_all(bus.WEBHOOKS):
            if not found:
                await connection.js.purge_stream("KV_WEBHOOKS", subject=bus.kv_subject(bus.WEBHOOKS, "hook.599"))
            found.add(key)
    assert found >= {f"hook.{number}" for number in range(599)}
    await connection.close()
