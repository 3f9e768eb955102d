"""Cancels providers' batches whose jobs are over: cancelled, failed, out of time, or at another attempt. Their sender
may be gone, so every evaluator checks the batches of its endpoints."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from services.bus import BatchRecord, BatchStage, Bus, ProviderBatches, heed_cancel
from services.evaluator.provider_batches.base import BatchApi
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.storing import TRANSIENT

log = logging.getLogger(__name__)

_LOOK_S = 15.0
_SOON_S = 0.5
"""The wait after a unit has ended: the job's state may be stored a moment later."""
_STALE_READ_S = 0.5
_DONE = (BatchStage.STORED, BatchStage.CLOSED)


class Leftovers:
    """`apis` by endpoint. `look()` looks at once."""

    def __init__(self, bus: Bus, batches: ProviderBatches, apis: Mapping[str, BatchApi], settle_s: float) -> None:
        self._bus = bus
        self._batches = batches
        self._apis = apis
        self._settle_s = settle_s
        self._wake = asyncio.Event()
        self._sought: dict[str, float] = {}

    def look(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            heed_cancel()
            await self._pass()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()
                    self._wake.clear()
                    await asyncio.sleep(_SOON_S)

    async def _pass(self) -> None:
        try:
            open_ = [
                (record, position)
                async for record, position in self._batches.all()
                if record.stage not in _DONE and record.endpoint in self._apis
            ]
            for record, position in open_:
                if await self._is_over(record):
                    await self._close(record, position)
        except ProviderError as error:
            log.warning("cannot yet cancel a batch of a job that has ended: %s", error.message)
        except TRANSIENT as error:
            log.warning("cannot look for batches of jobs that have ended (%s)", str(error) or type(error).__name__)

    async def _is_over(self, record: BatchRecord) -> bool:
        headers = await self._bus.job_headers(record.job_id)
        if headers is None or headers.attempt < record.attempt:
            # A replica may answer a moment late.
            await asyncio.sleep(_STALE_READ_S)
            headers = await self._bus.job_headers(record.job_id)
        return headers is None or headers.is_past(record.attempt)

    async def _close(self, record: BatchRecord, position: int) -> None:
        """Raises ProviderError; the next look tries again."""
        api = self._apis[record.endpoint]
        begun = [record.batch] if record.batch else []
        if record.stage is BatchStage.SENDING:
            begun = await api.find(record.mark)
            since = self._sought.setdefault(record.key, time.monotonic())
            if not begun and time.monotonic() - since < self._settle_s:
                # The call that begins the batch may still be on its way.
                return
        for batch_id in begun:
            await api.cancel(batch_id)
            log.info("cancelled %s's batch %s of job %s: the job has ended", api.label, batch_id, record.job_id)
        self._sought.pop(record.key, None)
        closed = replace(record, stage=BatchStage.CLOSED, written_at=time.time())
        if await self._batches.write(closed, position) is None:
            self._wake.set()
