"""A gate between units that share the process and a suspect that must have it alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Many inside together, or one alone. Whoever waits to be alone goes first, so that it is not starved."""

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
