"""How long an evaluator waits for a batch API that fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.evaluator.pacing.notices import Seldom
from services.evaluator.pacing.retry import delay_s
from services.evaluator.provider_batches.base import GoneError
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.units.units_in_hand import FaultError, Held

log = logging.getLogger(__name__)

T = TypeVar("T")

_LIMITED = 12
"""The factor on the usual patience for an API that asks for fewer calls: its limits are often hourly."""


class Patience:
    """The patience of one unit. Before the batch begins, an API that is away for `outage_s`, or asks for fewer calls
    for twelve times as long, fails the job. Afterwards the batch may have to be paid, so the unit waits as long as the
    job lasts, whatever the API says meanwhile."""

    def __init__(self, held: Held, outage_s: float, most_pause_s: float) -> None:
        self._held = held
        self._outage_s = outage_s
        self._most_pause_s = most_pause_s
        self._since = 0.0
        self._failures = 0
        self._failing = Seldom()

    async def call(self, ask: Callable[[], Awaitable[T]], *, paid: bool) -> T:
        """Asks until there is an answer. Raises FaultError, and GoneError."""
        while True:
            try:
                found = await ask()
            except GoneError:
                raise
            except ProviderError as error:
                await self.after(error, paid=paid)
            else:
                self.over()
                return found

    def over(self) -> None:
        """Notes that the API has answered."""
        self._failures = 0

    async def after(self, error: ProviderError, *, paid: bool) -> None:
        """Waits after a failure. Raises FaultError when waiting is useless."""
        now = time.monotonic()
        self._since = self._since if self._failures else now
        self._failures += 1
        if self._failing.due(now):
            log.warning("%s: %s", self._held.label, error.message, extra=self._held.logged)
        if not paid:
            patience_s = self._outage_s * (_LIMITED if error.rate_limited else 1)
            lasting = now - self._since > patience_s
            if error.fatal or not error.retryable or lasting:
                raise FaultError(error.message, error.detail)
        wait = delay_s(error, min(self._failures, 10))
        await asyncio.sleep(min(wait, self._most_pause_s) if error.retry_after_s is None else wait)
