"""Ids that callers give their creating requests, so that a repeated one creates nothing twice."""

from __future__ import annotations

import re

from services.errors import InvalidRequestError

_REQUEST_ID = re.compile(r"[\x21-\x7e]{0,64}")


def check_request_id(request_id: str) -> None:
    """Raises InvalidRequestError."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidRequestError(
            "request_id may have up to 64 printable ASCII characters, without spaces.", "request_id"
        )
