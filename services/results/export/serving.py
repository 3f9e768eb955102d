"""Exports as they are served: a few at once, and none for a reader that has stopped reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.errors import LimitReachedError
from services.results.database import Database
from services.results.export.exports import export
from services.results.visibility import Visibility
from touchstone.v1 import results_service_pb2

AT_ONCE = 4
"""Each holds some megabytes and a snapshot, beside which the file only grows."""
_BUSY_RETRY_S = 10


class Exports:
    """`stall_s`: how long a reader may take for a piece; `whole_s`: for all. Then the call is cancelled."""

    def __init__(self, database: Database, stall_s: float = 60, whole_s: float = 3600) -> None:
        self._database = database
        self._stall_s = stall_s
        self._whole_s = whole_s
        self._under_way = 0

    async def serve(
        self, request: results_service_pb2.ExportRequest, visible: Visibility
    ) -> AsyncGenerator[results_service_pb2.ExportResponse]:
        """The file's pieces. Raises LimitReachedError, and as `export`."""
        if self._under_way >= AT_ONCE:
            raise LimitReachedError(
                f"{AT_ONCE} exports are under way. Try again when one is done.", retry_after_s=_BUSY_RETRY_S
            )
        self._under_way += 1
        try:
            loop, call = asyncio.get_running_loop(), asyncio.current_task()
            assert call is not None
            end = loop.time() + self._whole_s
            async with aclosing(self._database.stream(lambda c: export(c, request, visible))) as pieces:
                async for piece in pieces:
                    patience = loop.call_at(min(end, loop.time() + self._stall_s), call.cancel)
                    try:
                        yield piece
                    finally:
                        patience.cancel()
        finally:
            self._under_way -= 1
