"""Publishes until JetStream has stored the message, through restarts of NATS and a full stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors

from services.bus import StreamFullError

log = logging.getLogger(__name__)

T = TypeVar("T")

TRANSIENT = (nats.errors.Error, OSError, asyncio.TimeoutError)
"""What NATS raises while it is away, restarting or slow. Of these, `MaxPayloadError` does not pass."""

UNSTORED = (*TRANSIENT, StreamFullError)
"""Errors of publishing that a best-effort message may ignore."""

_FULL_S = 1.0
_MOST_DELAY_S = 2.0


async def until_stored(publish: Callable[[], Awaitable[T]], what: str) -> T:
    """Repeats `publish` until it succeeds: at least once. Ends only by success, cancelling, or a permanent error."""
    delay = 0.1
    while True:
        try:
            return await publish()
        except StreamFullError:
            log.warning("the results stream is full; %s waits for the results service", what)
            delay = _FULL_S
        except nats.errors.MaxPayloadError:
            raise
        except TRANSIENT as error:
            log.warning("NATS did not store %s (%s); trying again", what, str(error) or type(error).__name__)
            delay = min(_MOST_DELAY_S, delay * 2)
        await asyncio.sleep(delay)
