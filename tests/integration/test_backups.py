"""Backups of a running results service and its streams, and restoring them over damaged files."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.local.recovery.check import check
from deploy.local.recovery.exchange import NOTE, require_whole
from deploy.local.recovery.repair import repair
from deploy.local.recovery.restore import restore
from deploy.local.settings import ROOT, LaunchError
from deploy.local.state import StateDir
from services import bus, rpc
from services.errors import InvalidRequestError
from services.results.backups import manifest
from services.results.stores.folder import Folder
from services.rpc import DAMAGED_FILES
from tests.integration.test_results_recovery import check_all_within, said_all
from tests.integration.test_results_service import STREAM_BYTES, Service, publish
from tests.nats_server import NatsServer
from tests.waiting import answered, until
from touchstone.v1 import results_service_pb2_grpc

if TYPE_CHECKING:
    Stub = results_service_pb2_grpc.ResultsServiceAsyncStub

pytestmark = pytest.mark.stack


class Installation:
    """A results service and NATS, their files as the launcher lays them out."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.state.mkdir()
        self.nats = NatsServer().start(self.state / "nats")
        self.service = Service(self.state, self.nats)
        self.said: list[str] = []

    async def backup(self, connection: bus.Bus) -> Path:
        await self.hears()
        answer = json.loads((await connection.client.request(bus.BACKUPS, timeout=60)).data)
        assert "folder" in answer, answer
        return Path(answer["folder"])

    async def hears(self) -> None:
        """Until the service takes orders for backups, a moment after it answers calls."""
        await answered(lambda: asyncio.to_thread(self.nats.hears, bus.BACKUPS))

    async def stop(self) -> None:
        self.service.end()
        self.nats.kill()

    async def restore(self, backup: Path) -> None:
        await asyncio.to_thread(restore, str(backup), self.state, self.said.append)

    def start(self) -> None:
        self.nats.restart()
        self.service.start()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path)
    yield installation
    if installation.service.process is not None and installation.service.process.poll() is None:
        installation.service.end()
    installation.nats.kill()


@pytest.fixture
async def stub(made: Installation) -> AsyncIterator[Stub]:
    async with rpc.channel(made.service.address) as channel:
        yield results_service_pb2_grpc.ResultsServiceStub(channel)


async def begun(made: Installation) -> bus.Bus:
    connection = await bus.connect(made.nats.url, "test")
    await connection.ensure(STREAM_BYTES)
    made.service.start()
    await made.service.answers()
    return connection


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 0x10
    path.write_bytes(content)


async def test_what_came_after_a_backup_is_there_after_a_flipped_byte_and_a_restore(
    made: Installation, stub: Stub
) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(3))
    folder = await made.backup(connection)
    assert {path.name for path in folder.iterdir()} == {
        manifest.FILE,
        manifest.DATABASE,
        *(f"{stream}.stream" for stream in bus.BACKED_UP),
    }
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.stream")} == {0o600}
    await said_all(stub, connection)
    await connection.close()
    await made.stop()
    database = made.service.database
    flip(database, random.Random(1))
    database.write_bytes(b"\0" * 4096 + database.read_bytes()[4096:])
    await made.restore(folder)
    (aside,) = made.state.glob("before-restore-*")
    assert (aside / "touchstone.duckdb").exists()
    assert not (aside / "nats").exists(), "whole streams stay"
    made.start()
    await check_all_within(stub)
    made.service.end()
    assert made.service.rows("SELECT count(*) FROM items WHERE job_id = 'early'") == [(30,)]


@pytest.mark.parametrize("how", [pytest.param("gone", marks=pytest.mark.stack), "torn"])
async def test_streams_that_are_lost_or_torn_come_back_with_all_that_can_be_read(
    made: Installation, stub: Stub, how: str
) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(3))
    await said_all(stub, connection)
    folder = await made.backup(connection)
    late = await publish(connection, "late", range(5))
    await connection.close()
    await made.stop()
    if how == "gone":
        (made.state / "nats").rename(made.state / "elsewhere")
    else:
        (block,) = (made.state / "nats").glob("jetstream/*/streams/AUDIT/msgs/1.blk")
        content = bytearray(block.read_bytes())
        content[len(content) // 2] ^= 0x10
        block.write_bytes(content)
    made.service.database.unlink()
    await made.restore(folder)
    await made.restore(folder)
    made.start()
    await check_all_within(stub)
    connection = await bus.connect(made.nats.url, "test")
    state = (await connection.js.stream_info(bus.RESULTS)).state
    assert state.last_seq == (late if how == "torn" else late - 5)
    await connection.close()


@pytest.mark.stack
async def test_a_backup_that_is_not_whole_is_refused_and_changes_nothing(made: Installation) -> None:
    connection = await begun(made)
    folder = await made.backup(connection)
    await connection.close()
    running = StateDir(made.state)
    with pytest.raises(LaunchError, match="Another Touchstone is running"):
        await made.restore(folder)
    running.close()
    await made.stop()
    before = made.service.database.read_bytes()
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.raises((LaunchError, InvalidRequestError), match=r"damaged|cannot be read"):
            await made.restore(folder)
        path.unlink()
        with pytest.raises((LaunchError, InvalidRequestError), match=r"damaged|not a backup"):
            await made.restore(folder)
        path.write_bytes(content)
    assert made.service.database.read_bytes() == before
    assert not (made.state / NOTE).exists()


async def only_in_files(made: Installation, stub: Stub, *, started: bool = False) -> None:
    """Every fact stored, the jobs' answers in their Parquet files, and the stream of answers empty."""
    connection = await bus.connect(made.nats.url, "test") if started else await begun(made)
    await said_all(stub, connection)
    files = made.service.database.parent / "jobs"
    await until(lambda: len(list(files.glob("*.parquet"))) >= 2)
    await connection.js.purge_stream(bus.RESULTS)
    await connection.close()


@pytest.mark.stack
async def test_a_repair_brings_back_what_no_stream_has_any_more(made: Installation, stub: Stub) -> None:
    await only_in_files(made, stub)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0
    await made.stop()
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said
    database = made.service.database
    database.write_bytes(b"\0" * 12_288 + database.read_bytes()[12_288:])
    assert await asyncio.to_thread(check, made.state, made.said.append) == 1
    assert made.said[-1].startswith(f"{database} cannot be read: ")
    assert "touchstone repair" in made.said[-1]
    await asyncio.to_thread(repair, made.state, made.said.append)
    (aside,) = made.state.glob("before-repair-*")
    assert (aside / database.name).read_bytes()[:12_288] == b"\0" * 12_288
    made.start()
    await check_all_within(stub)
    await made.stop()
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said


@pytest.mark.stack
async def test_a_lost_database_whose_answers_nats_has_given_up_is_repaired(made: Installation, stub: Stub) -> None:
    await only_in_files(made, stub)
    await made.stop()
    for path in made.service.database.parent.glob("touchstone.duckdb*"):
        path.unlink()
    made.start()
    process = made.service.process
    assert process is not None
    assert await asyncio.to_thread(process.wait, 60) == DAMAGED_FILES
    await made.stop()
    await asyncio.to_thread(repair, made.state, made.said.append)
    made.start()
    await check_all_within(stub)


@pytest.mark.stack
async def test_a_restore_brings_back_answers_that_nats_gave_up_after_the_backup(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(1))
    folder = await made.backup(connection)
    await connection.close()
    await only_in_files(made, stub, started=True)
    await made.stop()
    database = made.service.database
    database.write_bytes(b"\0" * 12_288 + database.read_bytes()[12_288:])
    await made.restore(folder)
    made.start()
    await check_all_within(stub)
    await made.stop()
    assert await asyncio.to_thread(check, made.state, made.said.append) == 0, made.said


async def test_a_start_stops_when_the_database_went_back_behind_what_nats_has(made: Installation, stub: Stub) -> None:
    connection = await begun(made)
    await said_all(stub, connection)
    made.service.end()
    before = {path: path.read_bytes() for path in made.service.database.parent.glob("touchstone.duckdb*")}
    made.service.start()
    last = await publish(connection, "late", range(3))
    await made.service.answers()
    await connection.kv_put(bus.JOBS, bus.FLOOR_KEY, str(last).encode())
    await connection.js.purge_stream(bus.RESULTS, seq=last)
    made.service.end()
    for path, content in before.items():
        path.write_bytes(content)
    await connection.close()
    made.service.start()
    process = made.service.process
    assert process is not None
    assert await asyncio.to_thread(process.wait, 60) == DAMAGED_FILES


@pytest.mark.parametrize("name", ["touchstone.duckdb", "touchstone.duckdb.wal"])
async def test_a_folder_in_the_place_of_the_database_is_put_aside(made: Installation, stub: Stub, name: str) -> None:
    connection = await begun(made)
    await said_all(stub, connection)
    await connection.close()
    await made.stop()
    place = made.service.database.with_name(name)
    place.unlink(missing_ok=True)
    (place / "inside").mkdir(parents=True)
    made.start()
    process = made.service.process
    assert process is not None
    assert await asyncio.to_thread(process.wait, 60) == DAMAGED_FILES
    await made.stop()
    assert await asyncio.to_thread(check, made.state, made.said.append) == 1
    await asyncio.to_thread(repair, made.state, made.said.append)
    (aside,) = made.state.glob("before-repair-*")
    assert (aside / name / "inside").is_dir()
    made.start()
    await check_all_within(stub)


async def test_a_check_names_streams_and_rows_of_datasets_that_cannot_be_read(made: Installation) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(3))
    await connection.close()
    await made.stop()
    (block,) = (made.state / "nats").glob("jetstream/*/streams/RESULTS/msgs/1.blk")
    before = block.read_bytes()
    content = bytearray(before)
    content[len(content) // 2] ^= 0x10
    block.write_bytes(content)
    assert await asyncio.to_thread(check, made.state, made.said.append) == 1
    assert made.said[-1].startswith("The stream RESULTS has "), made.said
    assert block.read_bytes() == content, "a check changes nothing"


CUT = """
import os, signal, sys
from pathlib import Path
from deploy.local.recovery import restore
left = int(sys.argv[3])
def audit(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.link", "shutil.rmtree", "shutil.copyfile"):
        if event == "open" and not (isinstance(arguments[1], str) and set(arguments[1]) & set("wax")):
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
restore.restore(sys.argv[1], Path(sys.argv[2]), print)
"""


@pytest.mark.chaos
async def test_a_restore_killed_at_any_step_is_run_again(made: Installation, stub: Stub, tmp_path: Path) -> None:
    connection = await begun(made)
    await said_all(stub, connection)
    folder = await made.backup(connection)
    await connection.close()
    await made.stop()
    (made.state / "nats").rename(made.state / "elsewhere")
    step, steps = 0, 0
    while steps == 0:
        step += 1
        killed = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", CUT, str(folder), str(made.state), str(step)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos/gen'}"},
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        if killed.returncode == 0:
            steps = step
            break
        assert killed.returncode == -signal.SIGKILL
        if (made.state / NOTE).exists():
            with pytest.raises(LaunchError, match="touchstone restore"):
                require_whole(made.state)
    assert steps > 10
    require_whole(made.state)
    made.start()
    await check_all_within(stub)


async def begin_backup(folder: Path, connection: bus.Bus) -> None:
    """Returns when a backup has a folder. Asks again, as a busy machine may break a connection on which a message is on
    its way, and two backups of one second have the same name."""
    there = _others(folder, set())
    for _ in range(10):
        await connection.client.publish(bus.BACKUPS, b"", reply=connection.client.new_inbox())
        with suppress(TimeoutError):
            return await until(partial(_others, folder, there), within=6, every=0.002)
    raise TimeoutError(f"no backup in {folder}")


def _others(folder: Path, there: set[Path]) -> set[Path]:
    return set(folder.glob("*")) - there


@pytest.mark.chaos
async def test_a_backup_cut_short_at_any_moment_is_none_and_goes_with_the_next(made: Installation) -> None:
    connection = await begun(made)
    await publish(connection, "early", range(20))
    draw = random.Random(5)
    cut = 0
    for _ in range(8):
        await made.hears()
        await begin_backup(made.state / "backups", connection)
        await asyncio.sleep(draw.choice((0, 0, 0.02, 0.1)))
        made.service.end()
        for folder in (made.state / "backups").glob("*"):
            if (folder / manifest.FILE).exists():
                assert list(manifest.faults(Folder(folder), manifest.read(Folder(folder)))) == []
            else:
                cut += 1
                with pytest.raises(InvalidRequestError, match="is not a backup"):
                    await made.restore(folder)
        made.service.start()
        await made.service.answers()
    assert cut
    last = await made.backup(connection)
    assert all((folder / manifest.FILE).exists() for folder in (made.state / "backups").glob("*"))
    assert list(manifest.faults(Folder(last), manifest.read(Folder(last)))) == []
    await connection.close()
