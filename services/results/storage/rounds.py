"""When to look again for what is no longer needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from services.results.storage.database import Database

_DUE_S = 60.0


async def rounds(database: Database, every_s: float) -> AsyncGenerator[None]:
    """Yields at once, then when something was stored or a checkpoint is to be done, looked for every `every_s` seconds,
    and at least every minute: some things become due by themselves."""
    while True:
        version, over_at = database.version, time.monotonic() + _DUE_S
        yield
        while True:
            await asyncio.sleep(every_s)
            if database.version != version or database.behind or time.monotonic() >= over_at:
                break
