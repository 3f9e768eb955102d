"""The results service's side: writes a copy of the database from time to time, while reads and writes continue."""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import time
from pathlib import Path

from services import bus
from services.errors import TouchstoneError
from services.results.replica import files
from services.results.storage.database import Database
from services.telemetry import metrics

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_REST = 10.0
"""Times as long as a copy took, there is none: a large database is copied less often."""
_ROOM = 2
"""Free room for a copy, in sizes of the database."""


class Copying:
    """Copies one database into a folder, at most every `every_s` seconds; 0 for never."""

    def __init__(self, database: Database, folder: Path, every_s: float, room: bus.Room) -> None:
        self._database, self._folder, self._every_s, self._room = database, folder.absolute(), every_s, room
        self._copied = -1
        """The version of the database that the newest copy has."""
        self._newest: Path | None = None

    async def run(self) -> None:
        """Until cancelled."""
        if not self._every_s:
            await asyncio.Event().wait()
        due, failing = 0.0, False
        while True:
            try:
                began = time.monotonic()
                if self.is_current:
                    await self.confirm()
                elif began >= due and self._room.level is bus.Level.ENOUGH:
                    due = began + self._every_s
                    await self.copy()
                    due = max(due, time.monotonic() + _REST * (time.monotonic() - began))
                    failing = False
            except (OSError, TouchstoneError) as error:
                if not failing:
                    log.warning("copying the database for reads is delayed: %s", error)
                failing = True
                due = time.monotonic() + self._every_s
            await asyncio.sleep(_LOOK_S)

    async def measure(self) -> None:
        """Sets the gauge of the newest copy's age. Raises OSError."""
        newest = await asyncio.to_thread(files.newest, self._folder) if self._every_s else None
        metrics.COPY_AGE.set(math.nan if newest is None else time.time() - newest.stat().st_mtime)

    @property
    def is_current(self) -> bool:
        """Whether nothing was stored since the newest copy."""
        return self._newest is not None and self._database.version == self._copied

    async def confirm(self) -> None:
        """Says that the newest copy is as the database is now. Raises OSError."""
        now = time.time()
        if self.is_current and self._newest is not None:
            await asyncio.to_thread(files.confirm, self._newest, now)

    async def copy(self) -> None:
        """Writes another copy. Raises UnavailableError and OSError."""
        version, as_of, began = self._database.version, time.time(), time.monotonic()
        fresh = await asyncio.to_thread(files.begin, self._folder)
        if not await asyncio.to_thread(self._fits):
            raise OSError(f"{self._folder} has no room for it")
        await self._database.copy(fresh)
        self._newest = await asyncio.to_thread(files.publish, self._folder, as_of)
        self._copied = version
        size, took_s = self._newest.stat().st_size, time.monotonic() - began
        log.info("copied the database for reads: %.1f MB in %.2f s", size / 1e6, took_s)

    def _fits(self) -> bool:
        return shutil.disk_usage(self._folder).free >= _ROOM * self._database.path.stat().st_size
