"""The reader's side: the newest copy as a database that is only read. It changes to a newer one while reads
continue.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from services.errors import DamagedFilesError, TouchstoneError, UnavailableError
from services.results.replica import files
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_copy
from services.telemetry import metrics

log = logging.getLogger(__name__)

T = TypeVar("T")
LOOK_S = 0.5


class _Copy:
    """An open copy and the number of its readers. Once it is `old`, its last reader closes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = Database(open_copy(path))
        self.as_of = path.stat().st_mtime
        self.readers = 0
        self.old = False


class Replica:
    """The newest copy of a folder, as `Reads` of one database. Without one, reads raise UnavailableError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._copy: _Copy | None = None
        self._refused: Path | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.version = 0
        """Counts the copies that were opened."""

    @property
    def jobs_version(self) -> int:
        return self.version

    @property
    def is_open(self) -> bool:
        return self._copy is not None

    async def measure(self) -> None:
        """Sets the gauge of the age of the copy that is read."""
        metrics.COPY_AGE.set(math.nan if self._copy is None else time.time() - self._copy.as_of)

    def as_of(self) -> str:
        """When the database was as it is read now, as ISO 8601. Raises UnavailableError without a copy."""
        at = datetime.fromtimestamp(self._require().as_of, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def look(self) -> None:
        """Changes to the newest copy if there is a newer one. One that cannot be opened is left alone."""
        path = await asyncio.to_thread(files.newest, self._folder)
        if self._copy is not None and path == self._copy.path:
            with suppress(FileNotFoundError):  # a newer one has just taken its place
                self._copy.as_of = path.stat().st_mtime
            return
        if path is None or path == self._refused:
            return
        try:
            fresh = await asyncio.to_thread(_Copy, path)
        except FileNotFoundError:
            return
        except TouchstoneError as error:
            if not path.exists():
                return
            self._refused = path
            log.warning("the copy %s is left alone: %s", path.name, error)
            return
        self._leave(fresh)
        self.version += 1
        log.info("reading the copy %s", path.name)

    @property
    def bring_back(self) -> None:
        """A copy takes no items."""

    @property
    def lend(self) -> None:
        """Its process may not reach the archive."""

    async def read(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T:
        async with self._held() as database:
            return await database.read(ask, waits=waits)

    async def read_long(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T:
        async with self._held() as database:
            return await database.read_long(ask, waits=waits)

    async def stream(self, make: Callable[[Connection], Iterator[T]]) -> AsyncGenerator[T]:
        async with self._held() as database, aclosing(database.stream(make)) as values:
            async for value in values:
                yield value

    async def close(self) -> None:
        """Waits for what is running."""
        self._leave(None)
        await asyncio.gather(*self._closing)

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[Database]:
        copy = self._require()
        copy.readers += 1
        try:
            yield copy.database
        except DamagedFilesError as error:
            # The next copy may be whole.
            if self._copy is copy:
                self._refused = copy.path
                self._leave(None)
            raise _no_copy() from error
        finally:
            copy.readers -= 1
            self._close_if_done(copy)

    def _require(self) -> _Copy:
        if self._copy is None:
            raise _no_copy()
        return self._copy

    def _leave(self, fresh: _Copy | None) -> None:
        old, self._copy = self._copy, fresh
        if old is not None:
            old.old = True
            self._close_if_done(old)

    def _close_if_done(self, copy: _Copy) -> None:
        if copy.old and not copy.readers:
            closing = asyncio.get_running_loop().create_task(copy.database.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


def _no_copy() -> UnavailableError:
    return UnavailableError("The results service does not answer, and there is no copy that can be read. Try again.")
