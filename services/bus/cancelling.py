"""Ending what waits for NATS: nats-py waits with `asyncio.wait_for`, which before Python 3.12 loses a cancellation that
comes together with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


def heed_cancel() -> None:
    """Raises CancelledError when the running task was asked to end. Loops around calls of NATS ask here.

    Not for a task in which a TaskGroup has failed: before Python 3.13 that may leave the group's own request behind.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels until they end, as often as that takes."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.5)
