"""What a scheduler that does not lead says of itself."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import nats.errors
import pytest

from services.scheduler.nats.lease import Lease


def lease_over(answer: bytes | nats.errors.Error) -> Lease:
    """Of "s1", on a NATS that tells who has the lease, or does not answer."""

    async def get_last_msg(stream: str, subject: str) -> Any:
        if isinstance(answer, nats.errors.Error):
            raise answer
        return SimpleNamespace(headers=None, data=answer, seq=7)

    connection: Any = SimpleNamespace(js=SimpleNamespace(get_last_msg=get_last_msg))
    return Lease(connection, "s1")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"s2", "This scheduler is a standby; s2 leads. Try again."),
        (nats.errors.TimeoutError(), "The scheduler waits for NATS, which does not answer."),
    ],
)
async def test_a_scheduler_says_why_it_does_not_lead(answer: bytes | nats.errors.Error, words: str) -> None:
    lease = lease_over(answer)
    assert lease.why_not.startswith("The scheduler is starting")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await lease.acquire()
    assert lease.why_not.startswith(words)
