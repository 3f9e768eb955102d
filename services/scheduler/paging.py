"""Pages of lists."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from services.errors import InvalidRequestError
from services.words import sentences

T = TypeVar("T")


def paged(
    found: Sequence[T], size: int, token: str, default: int, most: int, key: Callable[[T], str]
) -> tuple[list[T], str]:
    """One page of a list sorted by `key`, and the token of the next. Raises InvalidRequestError."""
    after = after_of(token)
    rest = [entry for entry in found if key(entry) > after] if token else list(found)
    page = rest[: page_size(size, default, most)]
    return page, token_of(key(page[-1])) if len(rest) > len(page) else ""


def page_size(size: int, default: int, most: int) -> int:
    """Raises InvalidRequestError."""
    if not 0 <= size <= most:
        raise InvalidRequestError(sentences.between("page_size", 0, most, zero="the default"), "page_size")
    return size or default


def token_of(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def after_of(token: str) -> str:
    """The last key of the page before; empty for an empty token. Raises InvalidRequestError."""
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError(sentences.PAGE_TOKEN, "page_token") from error
