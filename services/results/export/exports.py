"""An export: which table, which file."""

from __future__ import annotations

from collections.abc import Iterator

from services.errors import InvalidRequestError
from services.results.database import Connection
from services.results.export import batch_rows, file, golden_rows, item_rows, job_rows, metric_rows, runs
from services.results.export.columns import Table
from services.results.export.golden_rows import Golden
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1.results_service_pb2 import ExportRequest, ExportResponse, ListItemsRequest


def export(
    connection: Connection, request: ExportRequest, visible: Visibility = EVERYTHING
) -> Iterator[ExportResponse]:
    """The file in pieces of at most 1 MB; what was read is not kept. Errors come before the first piece.

    Raises InvalidRequestError, and NotFoundError for a job.
    """
    make = file.opener(request.format)
    found = _table(connection, request, visible)
    left_out = found.left_out if isinstance(found, Golden) else 0
    if left_out:
        yield ExportResponse(left_out=left_out)
    for piece in file.pieces(found.table if isinstance(found, Golden) else found, make):
        yield ExportResponse(data=piece)


def _table(connection: Connection, request: ExportRequest, visible: Visibility) -> Table | Golden:
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
        case ExportRequest.KIND_BATCH_OUTPUT:
            return batch_rows.batch_output(connection, request.items, request.format, visible)
        case ExportRequest.KIND_GOLDEN:
            return golden_rows.golden(connection, request.items, request.format, visible)
    raise InvalidRequestError("kind is missing; it may be JOBS, METRICS, ITEMS, BATCH_OUTPUT or GOLDEN.", "kind")
