"""Which units have crashed their evaluator, by notes that outlive it.

A unit that comes for the third time runs alone, and a note marks its beginning and its end. The next evaluator that
finds the note without an end counts a crash, but only if just the unit's process ended: the NATS server is still the
one that stored the note, and no longer has a connection of that process. When everything is killed and started again,
the NATS server is a new one, and the unit is not to blame.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass

import nats.errors
from nats.aio.msg import Msg

from services.bus import SUSPECTS, Bus, alive_subject, unit_token
from services.evaluator.storing import TRANSIENT, until_stored

_ASK_S = 2.0


@dataclass(frozen=True, slots=True)
class _Note:
    """`process` runs the unit alone, under the NATS `server`; empty when none does."""

    crashes: int = 0
    process: str = ""
    server: str = ""

    @classmethod
    def decode(cls, data: bytes) -> _Note:
        """Anything but a note is ignored."""
        with suppress(ValueError, TypeError, KeyError):
            told = json.loads(data)
            return cls(int(told["crashes"]), str(told["process"]), str(told["server"]))
        return cls()


class Suspects:
    """Notes on units, each by job id, attempt and unit number. Calls wait while NATS is away."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._process = uuid.uuid4().hex
        self._listening = asyncio.Lock()
        self._listens = False

    async def crashes(self, key: tuple[str, int, int]) -> int:
        """How often the unit is known to have crashed an evaluator while it ran alone."""
        return await until_stored(lambda: self._count(key), f"crashes of unit {key[2]}")

    @asynccontextmanager
    async def watch(self, key: tuple[str, int, int]) -> AsyncIterator[None]:
        """Notes that the unit is run alone inside the block."""
        await self.begin(key)
        try:
            yield
        finally:
            await self.end(key)

    async def begin(self, key: tuple[str, int, int]) -> None:
        """Notes that this process begins the unit, alone."""

        async def note() -> None:
            await self._listen()
            before, _ = await self._read(key)
            await self._write(key, _Note(before.crashes, self._process, self._bus.server_id))

        await until_stored(note, f"the beginning of unit {key[2]}")

    async def end(self, key: tuple[str, int, int]) -> None:
        """Notes that it has ended without a crash. Tried once: while this process runs, no crash is counted."""
        with suppress(*TRANSIENT):
            before, _ = await self._read(key)
            if before.process == self._process:
                await self._write(key, _Note(before.crashes))

    async def _count(self, key: tuple[str, int, int]) -> int:
        note, position = await self._read(key)
        if not note.process or note.server != self._bus.server_id or await self._is_there(note.process):
            return note.crashes
        counted = _Note(note.crashes + 1)
        if await self._bus.kv_update(SUSPECTS, _name(key), _encoded(counted), position) is None:
            # Another evaluator has counted meanwhile.
            return (await self._read(key))[0].crashes
        return counted.crashes

    async def _is_there(self, process: str) -> bool:
        try:
            await self._bus.client.request(alive_subject(process), b"", timeout=_ASK_S)
        except nats.errors.NoRespondersError:
            return False
        except nats.errors.TimeoutError:
            # It is frozen or slow, not gone.
            return True
        return True

    async def _listen(self) -> None:
        async def answer(msg: Msg) -> None:
            await msg.respond(b"")

        async with self._listening:
            if not self._listens:
                await self._bus.client.subscribe(alive_subject(self._process), cb=answer)
                await self._bus.client.flush()
                self._listens = True

    async def _read(self, key: tuple[str, int, int]) -> tuple[_Note, int]:
        msg = await self._bus.kv_get(SUSPECTS, _name(key))
        return (_Note(), 0) if msg is None else (_Note.decode(msg.data or b""), msg.seq or 0)

    async def _write(self, key: tuple[str, int, int], note: _Note) -> None:
        await self._bus.kv_put(SUSPECTS, _name(key), _encoded(note))


def _name(key: tuple[str, int, int]) -> str:
    job_id, attempt, unit = key
    return f"{job_id}.{attempt}.{unit_token(unit)}"


def _encoded(note: _Note) -> bytes:
    return json.dumps(asdict(note)).encode()


class Gate:
    """Many inside together, or one alone. A task that waits to be alone goes first, so that it does not starve."""

    def __init__(self) -> None:
        self._inside = 0
        self._alone = False
        self._suspects = 0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        while self._alone or self._suspects:
            await self._changed.wait()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._tell()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        self._suspects += 1
        try:
            while self._alone or self._inside:
                await self._changed.wait()
            self._alone = True
        finally:
            self._suspects -= 1
            self._tell()
        try:
            yield
        finally:
            self._alone = False
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
