"""Items as they are read: pages with cut texts, one whole item, and a job's stored results."""

from __future__ import annotations

from collections.abc import Sequence

from services.errors import NotFoundError
from services.results import paging
from services.results.items import annotations as item_annotations
from services.results.items import excerpts, filters
from services.results.items.scores import Score, score_of
from services.results.runs import job_reads
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import COLUMNS, stored_item
from services.results.visibility import EVERYTHING, HiddenJobError, Visibility
from services.words.enums import ITEM_FILTERS
from touchstone.v1 import results_service_pb2
from touchstone.v1.results_service_pb2 import ListItemsRequest, StoredItem

COUNT_LIMIT = 10_001

_Pair = tuple[StoredItem, StoredItem | None]
"""An item and the baseline's answer to it."""


def list_items(
    connection: Connection, request: ListItemsRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ListItemsResponse:
    """In order of task, item and repeat. Raises NotFoundError for a job, InvalidRequestError for the rest.

    Keys are found first, in narrow columns; only the page's rows are read whole.
    """
    size = paging.page_size(request.page_size, default=100, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str, int, int))
    chosen = filters.choose(connection, request, visible)
    key = dict(zip(("after_task", "after_item", "after_repeat"), after or (None, None, None), strict=True))
    where = chosen.parameters | key | {"size": size + 1}
    found = connection.execute(chosen.sql + query("items/item_page"), where).fetchall()
    counts = dict(zip(ITEM_FILTERS, found[0][2:], strict=True))
    places = [(here, there) for here, there, *_ in found if here is not None]
    stored = read_excerpts(connection, [place for pair in places for place in pair if place is not None], chosen.score)
    pairs, token = paging.fill_weighed(
        ((stored[here], None if there is None else stored[there]) for here, there in places),
        size,
        filter_,
        lambda pair: [pair[0].task, pair[0].result.item, pair[0].result.repeat],
        _weight,
    )
    beside = bool(request.baseline_job_id)
    return results_service_pb2.ListItemsResponse(
        items=[item for item, _ in pairs],
        baselines=[other or StoredItem() for _, other in pairs] if beside else [],
        next_page_token=token,
        total_size=min(counts[chosen.choice], COUNT_LIMIT),
        count_all=counts["all"],
        count_failures=counts["failures"],
        count_unparsed=counts["unparsed"],
        count_errors=counts["errors"],
        count_different=counts["different"],
        count_regressed=counts["regressed"],
        count_improved=counts["improved"],
        count_truncated=counts["truncated"],
        count_refused=counts["refused"],
    )


def get_item(
    connection: Connection, request: results_service_pb2.GetItemRequest, visible: Visibility = EVERYTHING
) -> StoredItem:
    """Whole texts. Raises NotFoundError for the item, for an unknown job and for one that is not visible."""
    unknown: NotFoundError | None = None
    try:
        score = score_of(job_reads.get_job(connection, request.job_id, visible).plan)
    except HiddenJobError:
        raise
    except NotFoundError as error:
        unknown = error
        # Items may arrive before the audit trail names their job.
        score = score_of(())
    rows = connection.execute(
        f"SELECT {score.sql}, {COLUMNS} FROM items "
        "WHERE job_id = $job_id AND task = $task AND item = $item AND repeat = $repeat",
        {"job_id": request.job_id, "task": request.task, "item": request.item, "repeat": request.repeat}
        | score.parameters,
    ).fetchall()
    if not rows:
        if unknown is not None:
            raise unknown
        raise NotFoundError(f"Job {request.job_id} has no stored item {request.item} of task {request.task!r}.")
    ((number, *values),) = rows
    stored = stored_item(values, number)
    item_annotations.put_on(connection, [stored])
    return stored


def list_stored_items(connection: Connection, job_id: str) -> results_service_pb2.ListStoredItemsResponse:
    rows = connection.execute(query("items/stored_positions"), {"job_id": job_id}).fetchall()
    return results_service_pb2.ListStoredItemsResponse(
        tasks=[results_service_pb2.StoredTaskItems(task=task, positions=positions) for task, positions in rows]
    )


def read_excerpts(connection: Connection, places: Sequence[int], score: Score) -> dict[int, StoredItem]:
    """Rows of `items` by their numbers, with cut texts and annotations."""
    text = f"SELECT rowid, {score.sql}, {excerpts.COLUMNS} FROM items WHERE rowid IN (SELECT unnest($places::BIGINT[]))"
    rows = connection.execute(text, {"places": places} | score.parameters).fetchall()
    stored = {place: excerpts.cut(stored_item(values, number)) for place, number, *values in rows}
    item_annotations.put_on(connection, stored.values())
    return stored


def _weight(pair: _Pair) -> int:
    return sum(one.ByteSize() for one in pair if one is not None)
