"""Checks the health of a running process, and ends it when its answers require a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from deploy.local.pulse import Pulse, State, Verdict
from deploy.local.state import processor_seconds

ASK_EVERY_S, WELL_EVERY_S = 2.0, 5.0
"""How often a process is asked, and how often one that was well. With little patience, the first holds for both."""

Look = Callable[[], Awaitable[State]]


async def watch(
    look: Look,
    patience_s: float,
    pid: Callable[[], int | None],
    end: Callable[[int, Verdict], Awaitable[None]],
    has_room: Callable[[], bool],
) -> None:
    """Watches one process through all of its restarts, until cancelled.

    `pid` gives the currently running process; `end` ends that process for the verdict's reason. `has_room` says whether
    the disk has room.
    """
    pulse = Pulse(patience_s)
    known: int | None = None
    asked, used = time.monotonic(), 0.0
    every_s = ASK_EVERY_S
    while True:
        await asyncio.sleep(every_s)
        every_s = ASK_EVERY_S
        now = pid()
        if now != known:
            pulse.begin()
            known, asked = now, time.monotonic()
            used = processor_seconds(now) if now is not None else 0.0
        if now is None:
            continue
        state = await look()
        if pid() != now:
            continue
        if state is State.WELL and patience_s >= 2 * WELL_EVERY_S:
            every_s = WELL_EVERY_S
        moment, total = time.monotonic(), processor_seconds(now)
        verdict = pulse.check(state, moment - asked, max(0.0, total - used), room=has_room())
        asked, used = moment, total
        if verdict is not None:
            await end(now, verdict)
