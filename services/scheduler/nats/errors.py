"""What NATS's failures mean: a leader that writes jobs no longer knows what is stored and starts over; for other
callers, another try may help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
import nats.js.errors

from services.errors import UnavailableError
from services.scheduler.ports import LeadershipLostError


@contextmanager
def ends_leadership(what: str) -> Iterator[None]:
    """Turns errors of NATS inside the block into LeadershipLostError."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise LeadershipLostError(f"{what}: {error or type(error).__name__}") from error


@contextmanager
def silent() -> Iterator[None]:
    """Turns errors of NATS inside the block into UnavailableError."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise UnavailableError(
            f"NATS does not answer ({error or type(error).__name__}). Try again in a moment."
        ) from error
