"""Lists calls, and sums what they took."""

from __future__ import annotations

from datetime import UTC, datetime

from services.errors import InvalidRequestError
from services.results import paging
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words.enums import CALL_OUTCOMES
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.call_pb2 import Call, CallUsage


def list_calls(
    connection: Connection, request: pb.ListCallsRequest, visible: Visibility = EVERYTHING
) -> pb.ListCallsResponse:
    """Newest first. Raises InvalidRequestError for a bad page or time."""
    size = paging.page_size(request.page_size, default=100, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str)) or (None, None)
    rows = connection.execute(
        query("calls/list_calls"),
        {
            "owner": request.owner,
            "endpoint": request.endpoint,
            "model": request.model,
            "started_after": _started_after(request),
            "after_at": paging.time_of(after[0]) if after[0] is not None else None,
            "after_id": after[1],
            "size": size + 1,
            **visible.parameters,
        },
    ).fetchall()
    calls, token = paging.fill_page(
        (Call.FromString(blob) for (blob,) in rows),
        size,
        filter_,
        lambda call: [call.started_at.ToMicroseconds(), call.call_id],
    )
    return pb.ListCallsResponse(calls=calls, next_page_token=token)


def call_usage(
    connection: Connection, request: pb.GetCallUsageRequest, visible: Visibility = EVERYTHING
) -> pb.GetCallUsageResponse:
    """By user and model, those that cost most first. Raises InvalidRequestError for a bad time."""
    rows = connection.execute(
        query("calls/usage"),
        {
            "owner": request.owner,
            "started_after": _started_after(request),
            "answered": CALL_OUTCOMES["answered"],
            "refused": CALL_OUTCOMES["refused"],
            **visible.parameters,
        },
    ).fetchall()
    answer = pb.GetCallUsageResponse()
    for *values, last_at in rows:
        names = ("owner", "endpoint", "model", "calls", "answered", "input_tokens", "output_tokens", "cost_usd")
        one = CallUsage(**dict(zip((*names, "unpriced"), values, strict=True)))
        one.last_at.FromDatetime(last_at.replace(tzinfo=UTC))
        answer.usage.append(one)
    return answer


def _started_after(request: pb.ListCallsRequest | pb.GetCallUsageRequest) -> datetime | None:
    if not request.HasField("started_after"):
        return None
    try:
        return request.started_after.ToDatetime()
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError(
            "started_after must be a time between the years 1 and 9999.", "started_after"
        ) from error
