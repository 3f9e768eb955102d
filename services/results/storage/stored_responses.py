"""Stored answers that replace calls."""

from __future__ import annotations

import re
from collections.abc import Iterator

from services.errors import ConflictError, InvalidRequestError
from services.results.paging import MAX_PAGE_BYTES
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import COLUMNS, stored_item
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from touchstone.v1 import item_result_pb2, results_service_pb2

MOST = 1000
"""Positions or identities in one request."""

_CHUNK = 64
"""Rows per read; a row's texts may take 384 KB."""
_IDENTITY = re.compile(r"[0-9a-f]{32}")
_COLUMNS = COLUMNS.replace('"prompt"', "'' AS prompt")


def find_responses(
    connection: Connection,
    request: results_service_pb2.FindResponsesRequest,
    visible: Visibility = EVERYTHING,
) -> results_service_pb2.FindResponsesResponse:
    """Final outcomes by place in a job or by identity; at least one where there is one, and then as many as fit into
    one message.

    Raises InvalidRequestError, and ConflictError where the texts were dropped.
    """
    if request.job_id:
        if request.identities:
            raise InvalidRequestError("Ask for a job's positions or for identities, not for both.", "identities")
        if not request.task:
            raise InvalidRequestError("Positions belong to a task. Set task.", "task")
        _check_number(len(request.positions), "positions")
        archived_items.require(connection, request.job_id)
        name = "storage/find_by_position"
        where = {"job_id": request.job_id, "task": request.task, "positions": list(request.positions)}
    else:
        _check_number(len(request.identities), "identities")
        for identity in request.identities:
            if not _IDENTITY.fullmatch(identity):
                raise InvalidRequestError(
                    f"An identity must have 32 hexadecimal digits; it is {identity!r}.", "identities"
                )
        archived_items.require_identities(connection, list(request.identities), visible)
        name, where = "storage/find_by_identity", {"identities": list(request.identities), **visible.parameters}
    found = connection.execute(query(name), where).fetchall()
    if any(dropped for _, dropped in found):
        raise ConflictError(
            f"The texts of job {request.job_id}'s answers were dropped, as the store was full. Start a new job."
        )
    rows = [row for row, _ in found]
    response = results_service_pb2.FindResponsesResponse()
    used = 0
    for job_id, result in _read(connection, rows):
        if not request.job_id:
            result.source_job = job_id
        used += result.ByteSize()
        if used > MAX_PAGE_BYTES and response.results:
            break
        response.results.append(result)
    return response


def _check_number(asked: int, field: str) -> None:
    if asked > MOST:
        raise InvalidRequestError(refusals.too_large("The request", asked, MOST, field), field)


def _read(connection: Connection, rows: list[int]) -> Iterator[tuple[str, item_result_pb2.ItemResult]]:
    """Results with their jobs."""
    text = f"SELECT {_COLUMNS} FROM items WHERE rowid IN (SELECT unnest($rows::BIGINT[])) ORDER BY rowid"
    for start in range(0, len(rows), _CHUNK):
        for values in connection.execute(text, {"rows": rows[start : start + _CHUNK]}).fetchall():
            stored = stored_item(values)
            yield stored.job_id, stored.result
