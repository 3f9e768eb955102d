"""Exports: which table, which file; a few at once, and none for a reader that has stopped reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from services.bus import Datasets
from services.errors import InvalidRequestError, LimitReachedError
from services.results.datasets.stored_rows import Pictures, StoredPictures
from services.results.export import batch_rows, golden_rows, item_rows, job_rows, metric_rows, tables
from services.results.export.golden_rows import Golden
from services.results.export.tables import Table
from services.results.storage.database import Connection, Reads
from services.results.visibility import EVERYTHING, Visibility
from services.telemetry import metrics
from services.words import refusals
from touchstone.v1 import results_service_pb2
from touchstone.v1.results_service_pb2 import ExportRequest, ExportResponse, ListItemsRequest

AT_ONCE = 4
"""Each holds some megabytes and a snapshot; while it exists, the file only grows."""
_BUSY_RETRY_S = 10


class Exports:
    """`store` has the pictures of rows. `stall_s`: how long a reader may take for a piece; `whole_s`: for all. Then the
    call is cancelled."""

    def __init__(
        self, database: Reads, store: Datasets | None = None, stall_s: float = 60, whole_s: float = 3600
    ) -> None:
        self._database = database
        self._store = store
        self._stall_s = stall_s
        self._whole_s = whole_s
        self._under_way = 0

    async def serve(
        self, request: results_service_pb2.ExportRequest, visible: Visibility
    ) -> AsyncGenerator[results_service_pb2.ExportResponse]:
        """The file's pieces. Raises LimitReachedError, and as `export`."""
        if self._under_way >= AT_ONCE:
            metrics.REFUSALS.add("exports")
            raise LimitReachedError(refusals.busy(AT_ONCE, "exports"), retry_after_s=_BUSY_RETRY_S)
        self._under_way += 1
        try:
            loop, call = asyncio.get_running_loop(), asyncio.current_task()
            assert call is not None
            end = loop.time() + self._whole_s
            pictures = StoredPictures(self._store, loop) if self._store is not None else None
            async with aclosing(self._database.stream(lambda c: export(c, request, visible, pictures))) as pieces:
                async for piece in pieces:
                    patience = loop.call_at(min(end, loop.time() + self._stall_s), call.cancel)
                    try:
                        yield piece
                    finally:
                        patience.cancel()
        finally:
            self._under_way -= 1


def export(
    connection: Connection,
    request: ExportRequest,
    visible: Visibility = EVERYTHING,
    pictures: Pictures | None = None,
) -> Iterator[ExportResponse]:
    """The file in pieces of at most 1 MB; what was read is not kept. Errors come before the first piece.

    Raises InvalidRequestError, and NotFoundError for a job.
    """
    make = tables.opener(request.format)
    found = _table(connection, request, visible, pictures)
    left_out = found.left_out if isinstance(found, Golden) else 0
    if left_out:
        yield ExportResponse(left_out=left_out)
    for piece in tables.pieces(found.table if isinstance(found, Golden) else found, make):
        yield ExportResponse(data=piece)


def _table(
    connection: Connection, request: ExportRequest, visible: Visibility, pictures: Pictures | None
) -> Table | Golden:
    match request.kind:
        case ExportRequest.KIND_JOBS:
            return job_rows.jobs(job_rows.chosen(connection, request.jobs, visible))
        case ExportRequest.KIND_METRICS:
            if not request.HasField("items"):
                return metric_rows.metrics(job_rows.chosen(connection, request.jobs, visible))
            if request.items != ListItemsRequest(job_id=request.items.job_id):
                raise InvalidRequestError("Metrics are exported for a whole job. Set only items.job_id.", "items")
            return metric_rows.metrics([job_rows.one(connection, request.items.job_id, visible)])
        case ExportRequest.KIND_ITEMS:
            return item_rows.items(connection, request.items, visible)
        case ExportRequest.KIND_BATCH_OUTPUT:
            return batch_rows.batch_output(connection, request.items, request.format, visible)
        case ExportRequest.KIND_GOLDEN:
            return golden_rows.golden(connection, request.items, request.format, visible, pictures)
        case ExportRequest.KIND_PREFERENCES:
            if request.items != ListItemsRequest(job_id=request.items.job_id):
                raise InvalidRequestError("Preferences are exported for a whole job. Set only items.job_id.", "items")
            return job_rows.preferences(connection, request.items.job_id, visible)
    raise InvalidRequestError("kind must be JOBS, METRICS, ITEMS, BATCH_OUTPUT, GOLDEN or PREFERENCES.", "kind")
