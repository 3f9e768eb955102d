"""Items as they are read: pages with cut texts, one item whole, and what is stored of a job."""

from __future__ import annotations

from services.errors import InvalidRequestError, NotFoundError
from services.results import job_reads, paging
from services.results.database import Connection, first_row, query
from services.results.rows import COLUMNS, stored_item
from touchstone.v1 import results_service_pb2
from touchstone.v1.results_service_pb2 import ListItemsRequest

EXCERPT_BYTES = 2048
COUNT_LIMIT = 10_001

_CHOICES = {
    ListItemsRequest.FILTER_UNSPECIFIED: "all",
    ListItemsRequest.FILTER_FAILURES: "failures",
    ListItemsRequest.FILTER_UNPARSED: "unparsed",
    ListItemsRequest.FILTER_ERRORS: "errors",
    ListItemsRequest.FILTER_CORRECT: "correct",
}
_TEXTS = ("prompt", "response", "reasoning", "prediction", "reference", "error")


def list_items(connection: Connection, request: ListItemsRequest) -> results_service_pb2.ListItemsResponse:
    """In order of task, item and repeat. Raises NotFoundError for the job, InvalidRequestError for the rest."""
    job_reads.get_job(connection, request.job_id)
    choice = _CHOICES.get(request.filter)
    if choice is None:
        raise InvalidRequestError(f"filter is {request.filter}; it may be one of {sorted(_CHOICES)}.", "filter")
    size = paging.page_size(request.page_size, default=100, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str, int, int))
    where = {"job_id": request.job_id, "task": request.task, "text": request.query}
    key = dict(zip(("after_task", "after_item", "after_repeat"), after or (None, None, None), strict=True))
    text = query("list_items").format(columns=COLUMNS)
    rows = connection.execute(text, where | key | {"choice": choice, "size": size + 1}).fetchall()
    items, token = paging.fill_page(
        (_excerpt(stored_item(row)) for row in rows),
        size,
        filter_,
        lambda stored: [stored.task, stored.result.item, stored.result.repeat],
    )
    found = connection.execute(query("count_items"), where).fetchall()
    counts = dict(zip(_CHOICES.values(), found[0], strict=True))
    return results_service_pb2.ListItemsResponse(
        items=items,
        next_page_token=token,
        total_size=min(counts[choice], COUNT_LIMIT),
        count_all=counts["all"],
        count_failures=counts["failures"],
        count_unparsed=counts["unparsed"],
        count_errors=counts["errors"],
    )


def get_item(connection: Connection, request: results_service_pb2.GetItemRequest) -> results_service_pb2.StoredItem:
    """Whole texts. Raises NotFoundError."""
    row = first_row(
        connection,
        f"SELECT {COLUMNS} FROM items WHERE job_id = $job_id AND task = $task AND item = $item AND repeat = $repeat",
        {"job_id": request.job_id, "task": request.task, "item": request.item, "repeat": request.repeat},
    )
    if row is None:
        raise NotFoundError(f"Job {request.job_id} has no stored item {request.item} of task {request.task!r}.")
    return stored_item(row)


def list_stored_items(connection: Connection, job_id: str) -> results_service_pb2.ListStoredItemsResponse:
    rows = connection.execute(query("stored_positions"), {"job_id": job_id}).fetchall()
    return results_service_pb2.ListStoredItemsResponse(
        tasks=[results_service_pb2.StoredTaskItems(task=task, positions=positions) for task, positions in rows]
    )


def _excerpt(stored: results_service_pb2.StoredItem) -> results_service_pb2.StoredItem:
    for name in _TEXTS:
        text = getattr(stored.result, name).encode()
        if len(text) > EXCERPT_BYTES:
            setattr(stored.result, name, text[: EXCERPT_BYTES - 3].decode(errors="ignore") + "…")
    return stored
