"""Whether the disks have room for further data.

Three levels: enough; low, where no new work is accepted and running jobs continue; full, where running jobs pause as
well. It counts free bytes and how many more files the disk takes; a disk that is mounted read-only is full. Sources:
the disk of the state directory, if it is on this machine; what NATS reports about its disk; and, for the scheduler,
what the results service reports about its disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TypeVar

import httpx
import nats.errors
from nats.aio.msg import Msg

from services import environment
from services.bus.contract import ROOM
from services.bus.operations import Bus
from services.errors import AwayError, NoRoomError, UnavailableError

T = TypeVar("T")

LOW_BYTES, LOW_FILES, LOW_SHARE = 500_000_000, 1_000, 0.05
FULL_SHARE = 0.25
"""The share of the low-water mark."""
RETRY_AFTER_S = 30
_LOOK_EVERY_S = 1.0
_ASK_EVERY_S = 5.0
"""How long an answer of a NATS that is well counts: to ask every second took half of a scheduler's time at rest."""
_TELL_EVERY_S = 5.0
"""How often this is repeated to the scheduler, which may have missed it."""
_TOLD_S = 300.0
"""How long a results service's last report counts after it has fallen silent: without room it cannot start."""
_TIMEOUT_S = 2.0
_CANNOT_WRITE = ("write error", "read-only file system")
"""What NATS reports while it keeps an error of a write, including one that failed for lack of files."""
_NO_SPACE = ("no space left", "disk quota exceeded", "insufficient storage", "insufficient resources")


class Level(IntEnum):
    """How much room there is."""

    ENOUGH = 0
    LOW = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Space:
    """A disk at one moment, in bytes and in files that it still takes. `low` and `low_files` are the marks below which
    no new work is accepted; `free_files` is None if the file system has no limit."""

    free: int
    total: int
    low: int
    free_files: int | None = None
    low_files: int = 0
    read_only: bool = False

    @property
    def level(self) -> Level:
        return Level.FULL if self.read_only else max(_level(self.free, self.low), self._level_of_files)

    @property
    def sentence(self) -> str:
        """For users; empty if there is enough."""
        if self.level is Level.ENOUGH:
            return ""
        if self.read_only:
            return (
                "The disk is read-only. Running jobs pause; new jobs and uploads are refused. Make it writable; "
                "Touchstone then continues."
            )
        what, jobs = ("almost full", "continue") if self.level is Level.LOW else ("full", "pause")
        return (
            f"The disk is {what}: {self.left}. Running jobs {jobs}; new jobs and uploads need {self._amount(1.0)}. "
            "Delete datasets or free disk space; Touchstone then continues."
        )

    @property
    def wait(self) -> str:
        """For users, of a full disk that keeps services from starting."""
        if self.read_only:
            return "The disk is read-only. Make it writable; Touchstone then continues."
        return (
            f"The disk is full: {self.left}. Free disk space; Touchstone continues when there is room for {self.full}."
        )

    @property
    def left(self) -> str:
        """The remaining room, in words, in the unit that is short."""
        if self._short_of_files:
            return f"there is room for {self.free_files or 'no'} more file{'' if self.free_files == 1 else 's'}"
        return f"{megabytes(self.free)} are free"

    @property
    def full(self) -> str:
        """What running jobs need, in words."""
        return self._amount(FULL_SHARE)

    def _amount(self, share: float) -> str:
        return f"{int(self.low_files * share):,} files" if self._short_of_files else megabytes(int(self.low * share))

    @property
    def _level_of_files(self) -> Level:
        return Level.ENOUGH if self.free_files is None else _level(self.free_files, self.low_files)

    @property
    def _short_of_files(self) -> bool:
        return self._level_of_files > _level(self.free, self.low)


def _level(free: int, low: int) -> Level:
    if free >= max(low, 1):
        return Level.ENOUGH
    return Level.LOW if free >= max(int(low * FULL_SHARE), 1) else Level.FULL


def low_bytes(environ: Mapping[str, str]) -> int | None:
    """The low-water mark that TOUCHSTONE_DISK_LOW_BYTES sets; None where it sets none. Raises InvalidRequestError."""
    name = "TOUCHSTONE_DISK_LOW_BYTES"
    if not environment.text(name, environ=environ):
        return None
    return environment.whole(name, 0, 0, environment.MOST_BYTES, environ)


def measure(folder: Path, low: int | None) -> Space:
    """The disk of a folder, or of its nearest parent that exists. A mark that is not set is the smaller of 500 MB and
    5 % of the disk; of files, of 1,000 and 5 %. With a mark of 0 files do not count."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    disk = os.statvfs(folder)
    total = disk.f_blocks * disk.f_frsize
    return Space(
        free=disk.f_bavail * disk.f_frsize,
        total=total,
        low=min(LOW_BYTES, int(total * LOW_SHARE)) if low is None else low,
        free_files=disk.f_favail if disk.f_files and low != 0 else None,
        low_files=min(LOW_FILES, int(disk.f_files * LOW_SHARE)),
        read_only=bool(disk.f_flag & os.ST_RDONLY),
    )


def is_no_space(text: str) -> bool:
    """Whether an error of NATS says that its disk has no room."""
    return any(words in text.lower() for words in _NO_SPACE)


def cannot_write(text: str) -> bool:
    """Whether an error of NATS says that a write failed, for lack of room or for another reason."""
    return is_no_space(text) or any(words in text.lower() for words in _CANNOT_WRITE)


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.{0 if size >= 1e7 else 1}f} MB"


class Room:
    """What a service knows about the room; `run` keeps it up to date. Without sources there is always enough."""

    def __init__(self, folder: Path | None = None, low: int | None = None, monitor_url: str = "") -> None:
        """`monitor_url` is where NATS reports its health; empty if unknown."""
        self._folder, self._low, self._monitor_url = folder, low, monitor_url
        self._well_until = 0.0
        self._told: tuple[float, Level, str] = (0.0, Level.ENOUGH, "")
        self._changed = asyncio.Event()
        self.level = Level.ENOUGH
        self.sentence = ""
        """What keeps new work from being accepted, for users; empty while there is enough room."""

    @classmethod
    def from_env(cls, folder: Path | None, monitor_url: str) -> Room:
        """Raises InvalidRequestError."""
        return cls(folder, low_bytes(os.environ), monitor_url)

    def require(self) -> None:
        """Raises NoRoomError unless there is room for new work."""
        if self.level is not Level.ENOUGH:
            raise NoRoomError(self.sentence, RETRY_AFTER_S)

    def is_full(self) -> bool:
        """Whether the disk of the folder is full now."""
        space = self._space()
        return space is not None and space.level is Level.FULL

    def reason(self, silence: AwayError) -> UnavailableError:
        """Why others are silent: the disk of the folder if it is full; else just `silence`."""
        space = self._space()
        return NoRoomError(space.wait, RETRY_AFTER_S) if space and space.level is Level.FULL else silence

    async def guard(self, pieces: AsyncIterator[T]) -> AsyncIterator[T]:
        """The pieces of an upload, as long as there is room. Raises NoRoomError before the first one that has none."""
        self.require()
        async for piece in pieces:
            self.require()
            yield piece

    async def run(self) -> None:
        """Checks every second until cancelled; asks NATS every five seconds while it is well."""
        async with httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT_S) as client:
            while True:
                await self.look(client)
                await asyncio.sleep(_LOOK_EVERY_S)

    async def look(self, client: httpx.AsyncClient) -> None:
        level, sentence = self._of_disk()
        if level is not Level.FULL and time.monotonic() >= self._well_until:
            if trouble := await self._trouble_of_nats(client):
                level, sentence = Level.FULL, sentence or trouble
            else:
                self._well_until = time.monotonic() + _ASK_EVERY_S
        until, told, said = self._told
        if told > level and time.monotonic() < until:
            level, sentence = told, said
        if (level, sentence) != (self.level, self.sentence):
            self._changed.set()
        self.level, self.sentence = level, sentence

    async def tell(self, connection: Bus) -> None:
        """Keeps the scheduler informed, until cancelled."""
        while True:
            self._changed.clear()
            with suppress(nats.errors.Error, OSError):
                await connection.client.publish(ROOM, json.dumps([int(self.level), self.sentence]).encode())
            with suppress(TimeoutError):
                async with asyncio.timeout(_TELL_EVERY_S):
                    await self._changed.wait()

    async def listen(self, connection: Bus) -> None:
        """Also counts what the results service reports, from now on and as long as the connection lives."""
        await connection.client.subscribe(ROOM, cb=self._hear)

    async def _hear(self, msg: Msg) -> None:
        with suppress(ValueError, TypeError):
            level, sentence = json.loads(msg.data)
            self._told = (time.monotonic() + _TOLD_S, Level(level), str(sentence))

    def _of_disk(self) -> tuple[Level, str]:
        space = self._space()
        return (space.level, space.sentence) if space else (Level.ENOUGH, "")

    def _space(self) -> Space | None:
        """None without a folder, or if its disk cannot be read."""
        if self._folder is not None:
            with suppress(OSError):
                return measure(self._folder, self._low)
        return None

    async def _trouble_of_nats(self, client: httpx.AsyncClient) -> str:
        """Why NATS cannot store anything, for users; empty if it can or does not say. A cluster can while most of its
        nodes can."""
        urls = [one.strip() for one in self._monitor_url.split(",") if one.strip()]
        found = [one for one in await asyncio.gather(*(_trouble(client, url) for url in urls)) if one]
        return found[0] if found and 2 * len(found) >= len(urls) else ""


async def _trouble(client: httpx.AsyncClient, url: str) -> str:
    """Why a node of NATS cannot store anything, for users."""
    try:
        answer = await client.get(f"{url}/healthz")
    except httpx.HTTPError:
        return ""
    if answer.status_code == 200 or not cannot_write(answer.text):
        return ""
    if is_no_space(answer.text):
        return (
            "The disk is full: NATS cannot store anything. Running jobs pause. Free disk space; Touchstone "
            "then continues."
        )
    return "NATS cannot write to its disk. Running jobs pause. See its log; a restart of NATS may help."
