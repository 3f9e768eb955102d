"""What NATS cuts off of damaged streams: it is said, and a restore brings it back without taking anything else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.local import health
from deploy.local.recovery import losses
from deploy.local.recovery.check import check
from deploy.local.recovery.exchange import NOTE
from deploy.local.recovery.offline_nats import offline_nats
from deploy.local.recovery.repair import repair
from deploy.local.settings import LaunchError
from deploy.local.state import StateDir
from services import bus
from services.errors import DamagedFilesError
from tests.integration.test_backups import Installation, begun, made, stub
from tests.integration.test_results_recovery import check_all_within, said_all
from tests.integration.test_results_service import STREAM_BYTES
from tests.waiting import answered
from touchstone.v1 import results_service_pb2_grpc

if TYPE_CHECKING:
    Stub = results_service_pb2_grpc.ResultsServiceAsyncStub

pytestmark = pytest.mark.stack

__all__ = ["made", "stub"]


def block_of(made: Installation, stream: str) -> Path:
    (block,) = (made.state / "nats").glob(f"jetstream/*/streams/{stream}/msgs/*.blk")
    return block


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


async def test_a_restore_of_damaged_streams_leaves_a_database_that_can_be_read(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    folder = await made.backup(connection)
    await said_all(stub, connection)
    await connection.close()
    await made.stop()
    for stream in (bus.KEPT, bus.RESULTS):
        flip(block_of(made, stream), 2)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 2
    await made.restore(folder)
    assert "The database can be read and is kept: it has what came after the backup." in made.said
    # A crash came before the very last step.
    (made.state / NOTE).write_text("touchstone restore\n")
    await made.restore(folder)
    made.start()
    await check_all_within(stub)
    made.service.end()


async def test_what_a_server_has_cut_off_is_said_until_a_restore_brings_it_back(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    for user in ("ann", "bob"):
        await connection.kv_put(bus.TOKENS, user, b"early")
    folder = await made.backup(connection)
    await connection.close()
    await made.service.answers()
    await said_once(made)
    assert made.said == []
    await made.stop()
    flip(block_of(made, f"KV_{bus.TOKENS}"), 2)
    made.start()
    await made.service.answers()
    await said_once(made)
    assert made.said[0].startswith(f"The stream KV_{bus.TOKENS} (users' tokens) has lost "), made.said
    assert " bytes in a damaged block" in made.said[0]
    assert made.said[1].endswith(f"run `touchstone restore BACKUP --state-dir {made.state}`.")
    connection = await bus.connect(made.nats.url, "test")
    await connection.kv_put(bus.TOKENS, "eve", b"late")
    await connection.close()
    await made.stop()
    # The server has forgotten it by now.
    made.start()
    await made.service.answers()
    await made.stop()
    made.said.clear()
    assert await asyncio.to_thread(check, made.state, made.said.append) == 1
    assert "(users' tokens) has lost " in made.said[0]
    await made.restore(folder)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said
    made.start()
    connection = await bus.connect(made.nats.url, "test")
    for user, value in (("ann", b"early"), ("bob", b"early"), ("eve", b"late")):
        found = await connection.kv_get(bus.TOKENS, user)
        assert found is not None
        assert found.data == value
    await connection.close()
    made.service.end()


async def test_an_emptied_block_and_a_message_that_cannot_be_read_are_said(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    await said_all(stub, connection)
    for user in ("ann", "bob"):
        await connection.kv_put(bus.TOKENS, user, b"early" * 20)
    folder = await made.backup(connection)
    await connection.close()
    await said_once(made)
    await made.stop()
    emptied = (bus.KEPT, bus.RESULTS)
    for stream in emptied:
        block_of(made, stream).write_bytes(b"")
    flip(block_of(made, f"KV_{bus.TOKENS}"), 130)
    await asyncio.to_thread(check, made.state, made.said.append)
    assert all(any(f"The stream {stream} " in fault for fault in made.said) for stream in emptied), made.said
    made.said.clear()
    made.nats.begin()
    await answered(health.nats_ready(f"{made.nats.monitor_url}/healthz", made.nats.port, made.state))
    state = StateDir(made.state)
    await losses.say_losses(state, made.nats.url, made.said.append, await losses.opened(made.nats.url))
    await losses.say_unreadable(state, made.nats.url, made.said.append)
    state.close()
    for stream in (*emptied, f"KV_{bus.TOKENS}"):
        assert any(f"The stream {stream} " in fault for fault in made.said), made.said
    made.nats.kill()
    await made.restore(folder)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said


async def test_a_restore_of_one_stream_brings_back_no_token_that_was_revoked(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    for user in ("ann", "bob"):
        await connection.kv_put(bus.TOKENS, user, b"token")
    folder = await made.backup(connection)
    await said_all(stub, connection)
    # As a minute after the token was revoked.
    await connection.js.purge_stream(f"KV_{bus.TOKENS}", subject=f"$KV.{bus.TOKENS}.ann")
    await connection.close()
    await made.stop()
    flip(block_of(made, bus.KEPT), 2)
    await made.restore(folder)
    async with offline_nats(made.state / "nats") as restored:
        assert [key async for key, _ in restored.kv_all(bus.TOKENS)] == ["bob"]


async def test_a_stream_with_a_bound_above_the_free_room_is_restored(tmp_path: Path) -> None:
    async with offline_nats(tmp_path / "nats") as connection:
        await connection.ensure(10**15)
        assert (await connection.js.stream_info(bus.RESULTS)).config.max_bytes == 10**15


async def said_once(made: Installation) -> None:
    """As the launcher does after a start."""
    state = StateDir(made.state)
    await losses.say_losses(state, made.nats.url, made.said.append)
    await losses.keep_record(state, made.nats.monitor_url)
    state.close()


@pytest.mark.parametrize(
    ("stream", "file"),
    [
        (f"KV_{bus.JOBS}", "meta.inf"),
        pytest.param(bus.AUDIT, "meta.sum", marks=pytest.mark.stack),
        pytest.param(bus.KEPT, "obs/results-kept/meta.inf", marks=pytest.mark.stack),
    ],
)
async def test_a_stream_that_cannot_be_opened_ends_the_start_and_is_mended(
    made: Installation, stub: Stub, stream: str, file: str
) -> None:
    connection = await begun(made)
    await said_all(stub, connection)
    await connection.kv_put(bus.JOBS, "job.x", b"kept")
    await connection.close()
    await made.stop()
    (folder,) = (made.state / "nats").glob(f"jetstream/*/streams/{stream}")
    flip(folder / file, (folder / file).stat().st_size // 2)
    made.nats.begin()
    with pytest.raises(
        (LaunchError, DamagedFilesError), match=rf"The stream {stream} .*is damaged.*`touchstone repair"
    ):
        await opened(made)
    made.nats.kill()
    made.said.clear()
    assert await asyncio.to_thread(check, made.state, made.said.append) >= 1
    assert f"The stream {stream} " in made.said[0]
    assert file.startswith("obs") or "or `touchstone repair` without a backup." in made.said[0]
    await asyncio.to_thread(repair, made.state, made.said.append)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said
    made.start()
    await check_all_within(stub)
    connection = await bus.connect(made.nats.url, "test")
    found = await connection.kv_get(bus.JOBS, "job.x")
    assert found is not None
    assert found.data == b"kept"
    await connection.close()
    made.service.end()


async def opened(made: Installation) -> None:
    """As the launcher and the services do at a start."""
    ready = health.nats_ready(f"{made.nats.monitor_url}/healthz", made.nats.port, made.state)
    await answered(ready)
    connection = await bus.connect(made.nats.url, "test")
    try:
        await connection.ensure(STREAM_BYTES)
    finally:
        await connection.close()
