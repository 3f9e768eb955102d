"""A NATS cluster of three nodes: who connects to what, streams made while it starts, copies, and the loss of a node."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from contextlib import AsyncExitStack, suppress

import nats.errors
import nats.js.errors
import pytest

from services import bus
from services.bus import streams
from services.errors import InvalidRequestError, UnavailableError
from tests.integration.evaluator_rig import until
from tests.nats_server import NatsCluster, NatsServer

BYTES = 64 * 1024 * 1024


def settings(cluster: NatsCluster, urls: list[str] | None = None, replicas: int = 3) -> bus.Settings:
    return bus.Settings(",".join(urls or cluster.urls), ",".join(cluster.monitor_urls), BYTES, replicas)


@pytest.mark.stack
async def test_services_that_start_with_the_cluster_create_its_streams_together(cluster: NatsCluster) -> None:
    cluster.begin()
    async with asyncio.timeout(90):
        made = await asyncio.gather(*(bus.open_bus(settings(cluster), f"service {n}") for n in range(4)))
    try:
        for config in bus.stream_configs(BYTES):
            info = await made[0].js.stream_info(str(config.name))
            assert info.config.num_replicas == 3, config.name
    finally:
        for one in made:
            await one.close()


async def test_a_client_that_knows_one_node_stays_connected_when_that_is_gone(cluster: NatsCluster) -> None:
    cluster.start()
    connection = await bus.connect(cluster.urls[0], "test")
    try:
        await connection.ensure(BYTES, 3)
        cluster.nodes[0].kill()
        await until(lambda: not connection.connected or connection.client.stats["reconnects"] > 0)
        await until(lambda: connection.connected)
        async with asyncio.timeout(30):
            await _put(connection, "a", b"1")
        found = await connection.kv_get(bus.EVALUATORS, "a")
        assert found is not None
        assert found.data == b"1"
    finally:
        await connection.close()


@pytest.mark.stack
async def test_with_one_node_gone_for_good_a_service_starts_and_reads_what_was_written(
    cluster: NatsCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.start()
    first = await bus.open_bus(settings(cluster), "first")
    cluster.nodes[1].kill()
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        stack.push_async_callback(first.close)
        # The first in the list is the one that is gone.
        second = await bus.open_bus(settings(cluster, [cluster.urls[1], cluster.urls[2]]), "second")
        stack.push_async_callback(second.close)
        assert "cannot check that this node syncs every write" in caplog.text
        for number in range(50):
            await _put(first, f"key{number % 5}", str(number).encode())
            found = await second.kv_get(bus.EVALUATORS, f"key{number % 5}")
            assert found is not None
            assert found.data == str(number).encode()
            listed = {key: msg.data async for key, msg in second.kv_all(bus.EVALUATORS)}
            assert listed[f"key{number % 5}"] == str(number).encode()


@pytest.mark.stack
async def test_more_copies_asked_for_later_are_made_one_stream_after_another(cluster: NatsCluster) -> None:
    cluster.start()
    connection = await bus.open_bus(settings(cluster, replicas=1), "one copy")
    try:
        await _put(connection, "a", b"kept")
        told: list[str] = []
        async with asyncio.timeout(120):
            await streams.replicate(connection.js, 3, told.append)
        names = [str(config.name) for config in bus.stream_configs(BYTES)]
        assert told == [f"copying {name} to 3 nodes" for name in names]
        for name in names:
            info = await connection.js.stream_info(name)
            assert info.config.num_replicas == 3
            assert info.cluster is not None
            assert info.cluster.replicas is not None
            assert [copy.current for copy in info.cluster.replicas] == [True, True], name
        again: list[str] = []
        await streams.replicate(connection.js, 3, again.append)
        assert again == []
        cluster.nodes[0].kill()
        async with asyncio.timeout(60):
            while True:
                with suppress(nats.errors.Error):
                    found = await connection.kv_get(bus.EVALUATORS, "a")
                    break
        assert found is not None
        assert found.data == b"kept"
    finally:
        await connection.close()


@pytest.mark.stack
async def test_a_cluster_without_a_majority_ends_a_start_with_a_sentence(cluster: NatsCluster) -> None:
    cluster.nodes[0].begin()
    connection = await bus.connect(cluster.urls[0], "alone")
    try:
        with pytest.raises(UnavailableError, match=re.escape("NATS did not open or create the stream WORK in time")):
            await streams.ensure(connection.js, BYTES, 3, deadline_s=1)
    finally:
        await connection.close()


async def test_a_node_that_does_not_sync_is_named(cluster: NatsCluster) -> None:
    cluster.start()
    await bus.connection.require_sync(",".join(cluster.monitor_urls), all_nodes=True)
    last = cluster.nodes[2]
    last.kill()
    config = last.store_dir / "nats.conf"
    last.begin(config.read_text().replace("sync_interval: always", "sync_interval: 2m"))
    last.until_healthy()
    with pytest.raises(UnavailableError, match=re.escape(f"{last.monitor_url} does not sync every write")):
        await bus.connection.require_sync(",".join(cluster.monitor_urls))


async def test_copies_on_a_single_server_are_a_wrong_setting(nats: NatsServer) -> None:
    connection = await bus.connect(nats.url, "test")
    try:
        with pytest.raises(InvalidRequestError, match="TOUCHSTONE_NATS_REPLICAS is 3, but NATS is not a cluster"):
            await connection.ensure(BYTES, 3)
    finally:
        await connection.close()


async def _put(connection: bus.Bus, key: str, value: bytes) -> None:
    """Writes, also while a stream has no leader."""
    while True:
        try:
            await connection.kv_put(bus.EVALUATORS, key, value)
            return
        except nats.errors.Error:
            await asyncio.sleep(0.1)


def test_one_command_sets_up_a_cluster(cluster: NatsCluster) -> None:
    cluster.start()
    environ = {
        **os.environ,
        "TOUCHSTONE_NATS_URL": ",".join(cluster.urls),
        "TOUCHSTONE_NATS_MONITOR_URL": ",".join(cluster.monitor_urls),
        "TOUCHSTONE_NATS_REPLICAS": "3",
    }
    command = (sys.executable, "-m", "services.bus")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "NATS is set up: every stream is there with 3 copies or more.\n"
    cluster.nodes[0].kill()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"NATS does not answer at its monitoring address {cluster.nodes[0].monitor_url}." in done.stderr
