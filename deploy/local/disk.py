"""The disk of the state directory, as the launcher checks and reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from deploy.local.settings import LaunchError
from services.bus.room import Level, low_bytes, measure, megabytes
from services.errors import InvalidRequestError
from services.rpc import WRONG_SETTINGS

LOOK_EVERY_S = 1.0


class StateDisk:
    """Raises LaunchError for an invalid low-water mark."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        try:
            self._low = low_bytes(environ)
        except InvalidRequestError as error:
            raise LaunchError(error.message, WRONG_SETTINGS) from error

    def has_room(self) -> bool:
        """Whether processes can write; false on a full disk."""
        try:
            return measure(self._folder, self._low).level is not Level.FULL
        except OSError:
            return True

    async def until_room(self, say: Callable[[str], None]) -> None:
        """Returns once processes can write."""
        if self.has_room():
            return
        space = measure(self._folder, self._low)
        say(
            f"The disk of {self._folder} is full: {space.left}. Touchstone starts by itself when there is room for "
            f"{space.full}."
        )
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self.has_room():
                return

    async def watch(self, say: Callable[[str], None]) -> None:
        """Reports when the disk gets low or full, and when there is room again, until cancelled."""
        before = Level.ENOUGH
        while True:
            try:
                space = measure(self._folder, self._low)
            except OSError:
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            if space.level is not before:
                before = space.level
                again = f"The disk of {self._folder} has room again: {megabytes(space.free)} are free."
                say(f"{space.sentence} It is the disk of {self._folder}." if space.sentence else again)
            await asyncio.sleep(LOOK_EVERY_S)
