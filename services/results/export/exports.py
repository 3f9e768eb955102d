"""An export: which table, which file."""

from __future__ import annotations

from collections.abc import Iterator

from services.errors import InvalidRequestError
from services.results.database import Connection
from services.results.export import file, item_rows, job_rows, metric_rows, runs
from services.results.export.columns import Table
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1.results_service_pb2 import ExportRequest, ListItemsRequest


def export(connection: Connection, request: ExportRequest, visible: Visibility = EVERYTHING) -> Iterator[bytes]:
    """The file in pieces of at most 1 MB; what was read is not kept. Errors come before the first piece.

    Raises InvalidRequestError, and NotFoundError for a job.
    """
    make = file.opener(request.format)
    return file.pieces(_table(connection, request, visible), make)


def _table(connection: Connection, request: ExportRequest, visible: Visibility) -> Table:
    match request.kind:
        case ExportRequest.KIND_JOBS:
            return job_rows.jobs(runs.chosen(connection, request.jobs, visible))
        case ExportRequest.KIND_METRICS:
            if not request.HasField("items"):
                return metric_rows.metrics(runs.chosen(connection, request.jobs, visible))
            if request.items != ListItemsRequest(job_id=request.items.job_id):
                raise InvalidRequestError("Of a job's metrics no items can be chosen. Set items.job_id alone.", "items")
            return metric_rows.metrics([runs.one(connection, request.items.job_id, visible)])
        case ExportRequest.KIND_ITEMS:
            return item_rows.items(connection, request.items, visible)
    raise InvalidRequestError("kind is missing; it may be JOBS, METRICS or ITEMS.", "kind")
