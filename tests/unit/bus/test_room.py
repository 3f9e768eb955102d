"""How much room there is on a disk, and what is said of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.bus import connect
from services.bus.room import Level, Room, Space, cannot_write, is_no_space, low_bytes, measure
from services.errors import AwayError, InvalidRequestError, NoRoomError
from tests.nats_server import NatsServer

MB = 1_000_000


@pytest.mark.parametrize(
    ("free", "level"),
    [
        (900 * MB, Level.ENOUGH),
        (500 * MB, Level.ENOUGH),
        (499 * MB, Level.LOW),
        (125 * MB, Level.LOW),
        (124 * MB, Level.FULL),
        (0, Level.FULL),
    ],
)
def test_levels_follow_the_low_water_mark(free: int, level: Level) -> None:
    assert Space(free, 100_000 * MB, 500 * MB).level is level


def test_without_a_mark_only_a_disk_without_a_byte_is_full() -> None:
    assert Space(1, 1000 * MB, 0).level is Level.ENOUGH
    assert Space(0, 1000 * MB, 0).level is Level.FULL


def test_the_sentence_says_how_much_is_free_and_what_to_do() -> None:
    assert Space(500 * MB, 1000 * MB, 500 * MB).sentence == ""
    assert Space(300 * MB, 1000 * MB, 500 * MB).sentence == (
        "The disk is almost full: 300 MB are free. Running jobs continue; new jobs and uploads need 500 MB. "
        "Delete datasets or free disk space; Touchstone then continues."
    )
    assert Space(0, 1000 * MB, 500 * MB).sentence.startswith("The disk is full: 0.0 MB are free. Running jobs pause;")


def test_what_keeps_services_from_starting_is_said_with_what_they_need() -> None:
    assert Space(0, 1000 * MB, 500 * MB).wait == (
        "The disk is full: 0.0 MB are free. Free disk space; Touchstone continues when there is room for 125 MB."
    )
    assert Space(900 * MB, 1000 * MB, 500 * MB, 12, 1000).wait.endswith("when there is room for 250 files.")
    assert Space(0, 1000 * MB, 500 * MB, read_only=True).wait.startswith("The disk is read-only. Make it writable;")


@pytest.mark.parametrize(
    ("files", "level"),
    [
        (None, Level.ENOUGH),
        (1000, Level.ENOUGH),
        (999, Level.LOW),
        (250, Level.LOW),
        (249, Level.FULL),
        (0, Level.FULL),
    ],
)
def test_a_disk_that_takes_no_more_files_is_full(files: int | None, level: Level) -> None:
    assert Space(900 * MB, 1000 * MB, 500 * MB, files, 1000).level is level


def test_the_sentence_names_what_there_is_too_little_of() -> None:
    assert Space(900 * MB, 1000 * MB, 500 * MB, 12, 1000).sentence == (
        "The disk is full: there is room for 12 more files. Running jobs pause; new jobs and uploads need 1,000 files. "
        "Delete datasets or free disk space; Touchstone then continues."
    )
    assert Space(1 * MB, 1000 * MB, 500 * MB, 900, 1000).sentence.startswith("The disk is full: 1.0 MB are free.")
    assert Space(900 * MB, 1000 * MB, 500 * MB, read_only=True).sentence.startswith("The disk is read-only.")


def test_the_files_of_a_disk_count_unless_there_is_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk(_: Path) -> os.statvfs_result:
        # bsize, frsize, blocks, bfree, bavail, files, ffree, favail, flag, namemax
        return os.statvfs_result((4096, 4096, 10**6, 10**6, 10**6, 100_000, 7, 7, 0, 255))

    monkeypatch.setattr(os, "statvfs", disk)
    assert measure(tmp_path, None).level is Level.FULL
    assert measure(tmp_path, None).low_files == 1000
    assert measure(tmp_path, 0).level is Level.ENOUGH


def test_the_default_mark_also_fits_small_disks(tmp_path: Path) -> None:
    space = measure(tmp_path / "not" / "there" / "yet", None)

    assert space.low == min(500 * MB, int(space.total * 0.05))
    assert measure(tmp_path, 7).low == 7


def test_the_mark_is_a_number_of_bytes() -> None:
    assert low_bytes({}) is None
    assert low_bytes({"TOUCHSTONE_DISK_LOW_BYTES": "0"}) == 0
    for text in ("-1", "1e9", "5 %", "²"):
        with pytest.raises(InvalidRequestError, match="TOUCHSTONE_DISK_LOW_BYTES must be"):
            low_bytes({"TOUCHSTONE_DISK_LOW_BYTES": text})


def test_errors_of_a_full_disk_are_known() -> None:
    assert is_no_space("JetStream stream 'RESULTS' write error: write 1.blk: no space left on device")
    assert not is_no_space("JetStream is not current with the meta leader")
    # Without a file for its next block, this is all that NATS says, for as long as it runs.
    lost = "JetStream stream '$G > WORK' write error: lmb missing"
    assert cannot_write(lost)
    assert not is_no_space(lost)
    assert not cannot_write("JetStream is not current with the meta leader")


async def room_beside(folder: Path | None, low: int, status: int = 200, text: str = "") -> Room:
    room = Room(folder, low, "http://nats.invalid" if text else "")
    transport = httpx.MockTransport(lambda _: httpx.Response(status, text=text))
    async with httpx.AsyncClient(transport=transport) as client:
        await room.look(client)
    return room


async def test_a_room_refuses_below_the_mark(tmp_path: Path) -> None:
    room = await room_beside(tmp_path, 2**62)
    assert room.level is Level.FULL
    with pytest.raises(NoRoomError, match="The disk is full") as refused:
        room.require()
    assert refused.value.retry_after_s == 30


@pytest.mark.parametrize(("full", "level"), [(0, Level.ENOUGH), (1, Level.ENOUGH), (2, Level.FULL), (3, Level.FULL)])
async def test_a_cluster_has_room_while_most_of_its_nodes_do(full: int, level: Level) -> None:
    def node(request: httpx.Request) -> httpx.Response:
        wrong = int(request.url.host.removeprefix("n")) <= full
        return httpx.Response(503, text="no space left on device") if wrong else httpx.Response(200)

    room = Room(None, None, "http://n1,http://n2, http://n3")
    async with httpx.AsyncClient(transport=httpx.MockTransport(node)) as client:
        await room.look(client)
    assert room.level is level


async def test_nats_may_have_no_room_where_this_disk_has(tmp_path: Path) -> None:
    full = await room_beside(tmp_path, 0, 503, '{"error":"write 1.blk: no space left on device"}')
    assert full.level is Level.FULL
    assert full.sentence.startswith("The disk is full: NATS cannot store anything.")
    broken = await room_beside(tmp_path, 0, 503, '{"error":"stream write error: lmb missing"}')
    assert broken.level is Level.FULL
    assert broken.sentence.startswith("NATS cannot write to its disk.")
    assert (await room_beside(None, 0, 503, '{"error":"JetStream is recovering"}')).level is Level.ENOUGH
    assert (await room_beside(None, 0, 200, '{"status":"ok"}')).level is Level.ENOUGH


async def test_nats_is_asked_at_each_look_only_while_it_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answers = [503, 503, 200, 200]

    def node(_: httpx.Request) -> httpx.Response:
        asked.append(answers[len(asked)])
        return httpx.Response(asked[-1], text="no space left on device")

    room = Room(None, None, "http://n1")
    async with httpx.AsyncClient(transport=httpx.MockTransport(node)) as client:
        for count in (1, 2, 3, 3, 3):
            await room.look(client)
            assert len(asked) == count
            assert room.level is (Level.FULL if count < 3 else Level.ENOUGH)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 6)
        await room.look(client)
    assert len(asked) == 4


def test_only_a_full_disk_is_the_reason_of_a_silence(tmp_path: Path) -> None:
    silence = AwayError("The scheduler does not answer.")
    assert isinstance(Room(tmp_path, 2**62).reason(silence), NoRoomError)
    for room in (Room(tmp_path, 0), Room(tmp_path / "gone", 0), Room(None, 2**62)):
        assert room.reason(silence) is silence


async def test_an_upload_ends_when_the_room_does() -> None:
    room = Room()

    async def pieces() -> AsyncIterator[int]:
        yield 1
        room.level, room.sentence = Level.LOW, "The disk is almost full."
        yield 2

    guarded = room.guard(pieces())
    assert await anext(guarded) == 1
    with pytest.raises(NoRoomError):
        await anext(guarded)


async def test_the_scheduler_hears_of_the_disk_of_the_results_service(tmp_path: Path, nats: NatsServer) -> None:
    connection = await connect(nats.url, "test")
    there, here = await room_beside(tmp_path, 2**62), Room()
    await here.listen(connection)
    telling = asyncio.create_task(there.tell(connection))
    try:
        await until_level(here, Level.FULL)
        assert here.sentence == there.sentence
        there.level, there.sentence = Level.ENOUGH, ""
        await until_level(here, Level.ENOUGH)
    finally:
        telling.cancel()
        await connection.close()


async def until_level(room: Room, level: Level) -> None:
    async with asyncio.timeout(20), httpx.AsyncClient() as client:
        while room.level is not level:
            await room.look(client)
            await asyncio.sleep(0.02)
