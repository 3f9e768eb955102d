"""Items as they are read: pages with texts cut to 2 KB, one whole item, and a job's stored results; all with the newest
annotation that a person gave them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from services.errors import NotFoundError
from services.results import paging
from services.results.items import filters
from services.results.items.scores import Score, score_of
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection, first_row, query
from services.results.storage.item_rows import CALLS, COLUMNS, metadata_fields, stored_item
from services.results.visibility import EVERYTHING, HiddenJobError, Visibility
from services.words.enums import ITEM_FILTERS
from touchstone.v1 import results_service_pb2
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.results_service_pb2 import Annotation, ListItemsRequest, StoredItem

EXCERPT_BYTES = 2048

_TEXTS = ("prompt", "response", "reasoning", "prediction", "reference", "error")
_VALUE_LENGTH = 200
COUNT_LIMIT = 10_001
MOST_CLASSES, LONGEST_CLASS = 20, 40
"""References of a task that make a table: their number, and characters of the longest."""

_Placed = tuple[int, StoredItem, StoredItem | None]
"""The number of an item's row, the item, and the baseline's answer to it."""
Key = tuple[str, str, int, int]
"""Job, task, item, repeat."""


def _beginnings() -> str:
    """COLUMNS with texts cut to what an excerpt may need, in characters. Messages and metadata are JSON, which cannot
    be cut: long messages are left out, as the prompt holds their texts, and metadata are read whole. So are tool calls.
    Log-probabilities are left out."""
    columns = COLUMNS
    for name in _TEXTS:
        columns = columns.replace(f'"{name}"', f'left("{name}", {EXCERPT_BYTES + 1}) AS "{name}"')
    messages = f"CASE WHEN strlen(messages) <= {EXCERPT_BYTES} THEN messages ELSE '' END AS messages"
    return columns.replace('"messages"', messages).replace('"logprobs"', "NULL AS logprobs")


_EXCERPT_COLUMNS = _beginnings()
"""What `cut` needs of a row of `items`, in the order of COLUMNS."""
_SHORT_COLUMNS = re.sub(r'left\("(response|reasoning)", \d+\)', "''", _EXCERPT_COLUMNS)
_WHOLE_COLUMNS = COLUMNS.replace('"logprobs"', "NULL AS logprobs")
_ANSWER = f"concat_ws(chr(10), nullif(response, ''), {CALLS})"


def cut(stored: StoredItem) -> StoredItem:
    """Cuts an item's texts in place. Metadata stay an object: a long one keeps the beginnings of its first fields."""
    for name in _TEXTS:
        text = getattr(stored.result, name).encode()
        if len(text) > EXCERPT_BYTES:
            setattr(stored.result, name, text[: EXCERPT_BYTES - 3].decode(errors="ignore") + "…")
    if stored.result.tool_calls:
        _cut_calls(stored.result)
    if len(stored.result.metadata.encode()) > EXCERPT_BYTES:
        stored.result.metadata = _shortened(stored.result.metadata)
    return stored


def _cut_calls(result: ItemResult) -> None:
    """The first calls, of the last of them the beginning."""
    left = EXCERPT_BYTES
    for place, call in enumerate(result.tool_calls):
        arguments = call.arguments.encode()
        if len(arguments) > left:
            call.arguments = arguments[: max(0, left - 3)].decode(errors="ignore") + "…"
            del result.tool_calls[place + 1 :]
            return
        left -= len(arguments)


def _shortened(text: str) -> str:
    kept: dict[str, Any] = {}
    used = 2
    for name, value in metadata_fields(text).items():
        if isinstance(value, str) and len(value) > _VALUE_LENGTH:
            value = value[:_VALUE_LENGTH] + "…"
        used += len(json.dumps({name: value}, ensure_ascii=False).encode())
        if used > EXCERPT_BYTES:
            break
        kept[name] = value
    return json.dumps(kept, ensure_ascii=False)


def list_items(
    connection: Connection, request: ListItemsRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ListItemsResponse:
    """In the order asked for. Raises NotFoundError for a job, InvalidRequestError for the rest.

    Keys are found first, in narrow columns; only the page's rows are read whole.
    """
    size = paging.page_size(request.page_size, default=100, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str, int, int))
    chosen = filters.choose(connection, request, visible)
    names = ("after_value", "after_task", "after_item", "after_repeat")
    key = dict(zip(names, after or (None,) * len(names), strict=True))
    where = chosen.parameters | key | {"size": size + 1}
    found = connection.execute(chosen.sql + query("items/item_page"), where).fetchall()
    counts = dict(zip(ITEM_FILTERS, found[0][3:], strict=True))
    places = [(here, there) for here, there, *_ in found if here is not None]
    values = {here: value for here, _, value, *_ in found}
    stored = read_excerpts(connection, [place for pair in places for place in pair if place is not None], chosen.score)
    rows, token = paging.fill_weighed(
        ((here, stored[here], None if there is None else stored[there]) for here, there in places),
        size,
        filter_,
        lambda row: [values[row[0]], row[1].task, row[1].result.item, row[1].result.repeat],
        _weight,
    )
    beside = bool(request.baseline_job_id)
    return results_service_pb2.ListItemsResponse(
        items=[item for _, item, _ in rows],
        baselines=[other or StoredItem() for *_, other in rows] if beside else [],
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
        classes=_classes(connection, request) if request.with_classes else [],
    )


def _classes(connection: Connection, request: ListItemsRequest) -> list[results_service_pb2.ClassCount]:
    where = {"job_id": request.job_id, "task": request.task, "most": MOST_CLASSES, "longest": LONGEST_CLASS}
    found = connection.execute(query("items/classes"), where).fetchall()
    return [
        results_service_pb2.ClassCount(reference=reference, prediction=said, items=items)
        for reference, said, items in found
    ]


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
    archived_items.require(connection, request.job_id)
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
    put_annotations_on(connection, [stored])
    return stored


def list_stored_items(connection: Connection, job_id: str) -> results_service_pb2.ListStoredItemsResponse:
    archived_items.require(connection, job_id)
    rows = connection.execute(query("items/stored_positions"), {"job_id": job_id}).fetchall()
    return results_service_pb2.ListStoredItemsResponse(
        tasks=[results_service_pb2.StoredTaskItems(task=task, positions=positions) for task, positions in rows]
    )


_OF_PLACES = "FROM items WHERE rowid IN (SELECT unnest($places::BIGINT[]))"
"""Ask for one job's rows at a time: between those of two jobs, the scan may read all other jobs'. A long text costs as
much as all those next to it: some thousand rows are compressed together."""


def read_excerpts(
    connection: Connection, places: Sequence[int], score: Score, *, answers: bool = True
) -> dict[int, StoredItem]:
    """Rows of `items` by their numbers, with cut texts and annotations; without `answers` no responses."""
    if not places:
        return {}
    columns = _EXCERPT_COLUMNS if answers else _SHORT_COLUMNS
    text = f"SELECT rowid, {score.sql}, {columns} {_OF_PLACES}"
    rows = connection.execute(text, {"places": places} | score.parameters).fetchall()
    stored = {place: cut(stored_item(values, number)) for place, number, *values in rows}
    put_annotations_on(connection, stored.values())
    return stored


def read_answers(connection: Connection, places: Sequence[int]) -> dict[int, str]:
    """Responses by the numbers of their rows, whole, with tool calls as text."""
    return dict(connection.execute(f"SELECT rowid, {_ANSWER} {_OF_PLACES}", {"places": places}).fetchall())


def read_whole(connection: Connection, place: int, score: Score) -> tuple[StoredItem, str] | None:
    """A row of `items` by its number, with its annotation and without log-probabilities, and its answer as
    `read_answers` gives it."""
    text = f"SELECT {_ANSWER}, {score.sql}, {_WHOLE_COLUMNS} {_OF_PLACES}"
    rows = connection.execute(text, {"places": [place]} | score.parameters).fetchall()
    for answer, number, *values in rows:
        stored = stored_item(values, number)
        put_annotations_on(connection, [stored])
        return stored, answer
    return None


def _weight(row: _Placed) -> int:
    return sum(one.ByteSize() for one in row[1:] if one is not None)


def held(connection: Connection, job_ids: Sequence[str], items: Sequence[int]) -> dict[Key, Annotation]:
    """Annotations of these jobs' answers to items with these numbers, in any task, without withdrawn ones."""
    jobs = sorted(set(job_ids))
    # Most jobs have none, and planning the query below takes four times as long.
    some = "SELECT 1 FROM annotations WHERE list_contains($jobs::VARCHAR[], job_id) LIMIT 1"
    if first_row(connection, some, {"jobs": jobs}) is None:
        return {}
    rows = connection.execute(
        "SELECT job_id, task, item, repeat, verdict, corrected_answer, note, author, annotated_at "
        "FROM present_annotations WHERE verdict <> $none "
        "AND job_id IN (SELECT unnest($jobs::VARCHAR[])) AND item IN (SELECT unnest($items::INTEGER[]))",
        {"none": Annotation.VERDICT_UNSPECIFIED, "jobs": jobs, "items": sorted(set(items))},
    ).fetchall()
    found = {}
    for job_id, task, item, repeat, verdict, corrected, note, author, annotated_at in rows:
        one = Annotation(verdict=verdict, corrected_answer=corrected, note=note, author=author)
        one.annotated_at.FromDatetime(annotated_at.replace(tzinfo=UTC))
        found[job_id, task, item, repeat] = one
    return found


def put_annotations_on(connection: Connection, stored: Iterable[StoredItem]) -> None:
    """Adds its annotation to each answer."""
    by_key = {(one.job_id, one.task, one.result.item, one.result.repeat): one for one in stored}
    if by_key:
        jobs, _, items, _ = zip(*by_key, strict=True)
        for key, annotation in held(connection, jobs, items).items():
            if key in by_key:
                by_key[key].annotation.CopyFrom(annotation)
