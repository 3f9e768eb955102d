"""Errors in the shape that OpenAI's clients read."""

from __future__ import annotations

import re
from typing import Any

from services.errors import BadLinesError, InvalidRequestError
from services.gateway.http.responses import FieldErrors, JSONResponse, headers_of, sentence_of, status_of

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
_SHOWN_LINES = 10
_DATASET = re.compile(r"\bds_([0-9a-f]{32})\b")
_MISSING = re.compile(r"^Dataset (file-[0-9a-f]{32}) not found")


def openai_error(error: Exception) -> JSONResponse:
    """`{"error": {message, type, param, code}}`. Wrong fields are 400 here, as there."""
    status = _status(error)
    headers = headers_of(error)
    # The clients repeat a 409; ours means that a file is in use, which a second try does not change.
    if status == 409:
        headers["x-should-retry"] = "false"
    return JSONResponse(error_body(error), status, headers)


def error_body(error: Exception) -> dict[str, Any]:
    """What is in such an answer."""
    status = _status(error)
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    told = {"message": _sentence(error), "type": kind, "param": _param(error), "code": _CODES.get(status)}
    return {"error": told}


def _status(error: Exception) -> int:
    return 400 if isinstance(error, FieldErrors) else status_of(error)


def _sentence(error: Exception) -> str:
    if isinstance(error, BadLinesError):
        # The first one is in the message.
        lines = (f"Line {number}: {reason}" for number, reason in error.lines[1:_SHOWN_LINES])
        return " ".join((error.message, *lines))
    # The services name datasets, which are files here.
    words = _DATASET.sub(r"file-\1", sentence_of(error))
    return _MISSING.sub(r"No such File object: \1", words)


def _param(error: Exception) -> str | None:
    if isinstance(error, FieldErrors):
        return error.problems[0][0] or None
    if isinstance(error, InvalidRequestError):
        return error.field or None
    return None
