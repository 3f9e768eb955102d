"""What NATS's failures mean to a leader: it no longer knows what is stored, so it starts over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
import nats.js.errors

from services.scheduler.ports import LeadershipLostError


@contextmanager
def ends_leadership(what: str) -> Iterator[None]:
    """Turns errors of NATS inside the block into LeadershipLostError."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise LeadershipLostError(f"{what}: {error or type(error).__name__}") from error
