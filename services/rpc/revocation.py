"""Ends long calls when the token of their caller is revoked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from services.errors import TouchstoneError, UnauthenticatedError

log = logging.getLogger(__name__)

CHECK_S = 1.5


@asynccontextmanager
async def while_valid(check: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Asks `check` every CHECK_S seconds while the block runs. Raises its UnauthenticatedError, which ends the block.
    Other errors are ignored: a silent store of tokens does not revoke any."""
    work = asyncio.current_task()
    assert work is not None
    loop = asyncio.get_running_loop()
    ended: list[UnauthenticatedError] = []
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while True:
            try:
                await check()
            except UnauthenticatedError as error:
                ended.append(error)
                work.cancel()
                return
            except TouchstoneError as error:
                log.warning("cannot look up a token: %s", error)
            await asyncio.sleep(CHECK_S)

    # Most calls end before, and cost only a timer.
    timer = loop.call_later(CHECK_S, lambda: watching.append(loop.create_task(watch())))
    try:
        yield
    except asyncio.CancelledError:
        if ended and work.uncancel() == 0:
            raise ended[0] from None
        raise
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()
