"""Pages of the fakes' lists, with the tokens of the real services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from services.results import paging

T = TypeVar("T")


def page(request: Any, found: Sequence[T], usual: int) -> tuple[list[T], str]:
    """One page of a list of the results service, and the token of the next. Raises InvalidRequestError."""
    first = start(request)
    size = paging.page_size(request.page_size, default=usual, most=500)
    after = first + size
    token = paging.encode_token(paging.page_filter(request), [after]) if after < len(found) else ""
    return list(found[first:after]), token


def start(request: Any) -> int:
    """Where the page begins. Raises InvalidRequestError."""
    key = paging.decode_token(request.page_token, paging.page_filter(request), (int,))
    return max(0, int(key[0])) if key else 0
