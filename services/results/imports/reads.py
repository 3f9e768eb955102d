"""What evaluators and the scheduler read from an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.errors import InvalidRequestError, NotFoundError
from services.results.paging import MAX_PAGE_BYTES
from services.results.storage.database import Connection, first_row
from services.words import refusals
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.item_result_pb2 import Continuation
from touchstone.v1.results_service_pb2 import (
    FindResponsesRequest,
    FindResponsesResponse,
    GetImportRequest,
    GetImportResponse,
    ImportedAnswer,
    ImportedRun,
    ImportedTask,
)

_ITEMS = 100_000
_ROWS_BYTES = MAX_PAGE_BYTES - 256 * 1024
"""Bytes of the rows on a page without the last one, which has at most 128 KB."""
_MOST = 1000
_CHUNK = 64
"""Answers per read; one may take half a megabyte."""
_PLAIN = (
    *("task", "item", "repeat", "row", "prompt", "response", "finish_reason", "latency_ms", "input_tokens"),
    *("output_tokens", "error", "reasoning", "reasoning_tokens", "ttft_ms", "cost_usd", "served_model"),
)
_COLUMNS = ", ".join(f'"{name}"' for name in _PLAIN)


def get_import(connection: Connection, request: GetImportRequest) -> GetImportResponse:
    """Raises NotFoundError when there is no such import, or its answers were dropped."""
    where = {"import_id": request.import_id}
    found = first_row(
        connection, "SELECT run, owner, dropped_at FROM imports WHERE import_id = $import_id AND whole", where
    )
    if found is None:
        raise NotFoundError(
            f"{refusals.not_found('Import', request.import_id)}. Import the logs, and use the id that this returns."
        )
    run, owner, dropped_at = found
    if dropped_at is not None:
        raise NotFoundError(
            f"The answers of import {request.import_id} were dropped on {dropped_at:%Y-%m-%d}. Import the logs again."
        )
    tasks = connection.execute(
        'SELECT task, count(DISTINCT item), count(*), max("repeat") + 1 FROM imported_answers '
        "WHERE import_id = $import_id GROUP BY task ORDER BY task",
        where,
    ).fetchall()
    response = GetImportResponse(
        run=ImportedRun.FromString(run),
        owner=owner,
        tasks=[
            ImportedTask(task=task, items=items, answers=answers, repeats=repeats)
            for task, items, answers, repeats in tasks
        ],
    )
    if request.task:
        after = request.after if request.HasField("after") else -1
        _add_items(connection, response, where | {"task": request.task, "after": after}, request.with_rows)
    return response


def _add_items(
    connection: Connection, response: GetImportResponse, where: Mapping[str, object], with_rows: bool
) -> None:
    row = 'first("row" ORDER BY "repeat")' if with_rows else "''"
    rows = connection.execute(
        f"SELECT item, CASE WHEN min(prompts) = max(prompts) THEN min(prompts) ELSE 0 END, {row} AS row_of_item "
        "FROM imported_answers "
        "WHERE import_id = $import_id AND task = $task AND item > $after GROUP BY item "
        # One row more than fits, so that there is always one.
        "QUALIFY sum(strlen(row_of_item)) OVER (ORDER BY item) - strlen(row_of_item) < $bytes "
        "ORDER BY item LIMIT $most",
        {**where, "most": _ITEMS, "bytes": _ROWS_BYTES},
    ).fetchall()
    response.items.extend(item for item, _, _ in rows)
    response.prompts.extend(prompts for _, prompts, _ in rows)
    if with_rows:
        response.rows.extend(row for _, _, row in rows)


def find_answers(connection: Connection, request: FindResponsesRequest) -> FindResponsesResponse:
    """Answers by item; at least one if there is one, and then as many as fit into one message. Raises
    InvalidRequestError."""
    if request.job_id or request.identities or request.positions:
        raise InvalidRequestError("Set exactly one of import_id, positions and identities.", "import_id")
    if not request.task:
        raise InvalidRequestError("Set task: items belong to a task.", "task")
    if len(request.items) > _MOST:
        raise InvalidRequestError(refusals.too_large("The request", len(request.items), _MOST, "items"), "items")
    response = FindResponsesResponse()
    used = 0
    items = sorted(set(request.items))
    for start in range(0, len(items), _CHUNK):
        for answer in _read(connection, request, items[start : start + _CHUNK]):
            used += answer.ByteSize()
            if used > MAX_PAGE_BYTES and response.answers:
                return response
            response.answers.append(answer)
    return response


def _read(connection: Connection, request: FindResponsesRequest, items: Sequence[int]) -> list[ImportedAnswer]:
    rows = connection.execute(
        f"SELECT {_COLUMNS}, continuations, tool_calls FROM imported_answers WHERE import_id = $import_id "
        'AND task = $task AND "repeat" = $repeat AND item IN (SELECT unnest($items::INTEGER[])) ORDER BY item',
        {"import_id": request.import_id, "task": request.task, "repeat": request.repeat, "items": items},
    ).fetchall()
    return [
        ImportedAnswer(
            **dict(zip(_PLAIN, plain, strict=True)),
            continuations=[Continuation(**each) for each in continuations],
            tool_calls=[ToolCall(**each) for each in tool_calls],
        )
        for *plain, continuations, tool_calls in rows
    ]
