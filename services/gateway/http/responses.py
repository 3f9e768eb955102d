"""Errors as HTTP: one table from gRPC codes, one body shape, for API and pages. JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from starlette.exceptions import HTTPException
from starlette.responses import Response

from services import rpc
from services.errors import BadLinesError, LimitReachedError, TouchstoneError, UnauthenticatedError, UnavailableError
from services.gateway.backend import RpcFailureError

log = logging.getLogger(__name__)

HTTP_STATUS: dict[grpc.StatusCode, int] = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNKNOWN: 500,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
CSV = "text/csv; charset=utf-8; header=present"
INTERNAL = "internal error; the gateway's log has the details."


class FieldErrors(TouchstoneError):  # noqa: N818 - it holds several errors, one per field
    """The request's fields are wrong: `problems` are (path, sentence) pairs, at least one."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.problems = problems


class JSONResponse(Response):
    """UTF-8 JSON without NaN."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content).encode()


def json_text(content: Any) -> str:
    """The content as JSON, with null for numbers that are not finite: one of them must not prevent the rest of a
    list."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        log.warning("an answer contains a number that JSON does not have; it is shown as null")
        return json.dumps(_finite(content), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(held) for name, held in value.items()}
    return [_finite(held) for held in value] if isinstance(value, list | tuple) else value


def status_of(error: Exception) -> int:
    """The HTTP status of an error; 500 for an unexpected one."""
    if isinstance(error, FieldErrors):
        return 422
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, RpcFailureError):
        return HTTP_STATUS[error.code]
    if isinstance(error, TouchstoneError) and type(error) is not TouchstoneError:
        code: grpc.StatusCode = rpc.to_status(error).code
        return HTTP_STATUS[code]
    return 500


def sentence_of(error: Exception) -> str:
    """What a user may read of an error. The text of an unexpected one stays in the log."""
    if isinstance(error, TouchstoneError):
        return error.message
    if isinstance(error, HTTPException):
        return str(error.detail)
    return INTERNAL


def headers_of(error: Exception) -> dict[str, str]:
    """Headers that belong to an error: when to try again, how to authenticate, which methods there are."""
    if isinstance(error, LimitReachedError | UnavailableError):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, UnauthenticatedError):
        return {"WWW-Authenticate": 'Bearer realm="touchstone"'}
    if isinstance(error, HTTPException) and error.headers:
        return dict(error.headers)
    return {}


def json_error(error: Exception) -> JSONResponse:
    """`{"detail": sentence}`, with `retry_after`, `errors` or `lines` if there are any."""
    status = status_of(error)
    sentence = sentence_of(error)
    body: dict[str, Any] = {"detail": f"Benchmark execution failed: {sentence}" if status == 500 else sentence}
    if isinstance(error, LimitReachedError | UnavailableError):
        body["retry_after"] = error.retry_after_s
    if isinstance(error, FieldErrors):
        body["errors"] = [{"field": field, "message": message} for field, message in error.problems]
    if isinstance(error, BadLinesError):
        body["error"] = sentence
        body["lines"] = [{"line": number, "reason": reason} for number, reason in error.lines]
        body["bad_lines"] = error.total
        body["reasons"] = [
            {"reason": one.reason, "count": one.count, "lines": list(one.lines)} for one in error.reasons
        ]
        body["other_lines"] = error.other_lines
    return JSONResponse(body, status, headers_of(error))


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same names as CSV with a head; an empty cell for None."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(rows[0] if rows else ())
    writer.writerows([["" if cell is None else csv_cell(cell) for cell in row.values()] for row in rows])
    return out.getvalue()


def csv_cell(cell: object) -> object:
    """A text that a spreadsheet would run as a formula is marked as a text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
