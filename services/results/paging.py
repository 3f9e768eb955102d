"""Pages by key: a token holds the last row's key and a digest of the filter, and is invalid for any other filter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TypeVar

from google.protobuf.message import Message

from services.errors import InvalidRequestError
from services.words import refusals

M = TypeVar("M", bound=Message)
R = TypeVar("R")
Key = list[str | int]

MAX_PAGE_BYTES = 3 * 1024 * 1024
"""A page ends early if it would exceed the size of a gRPC message."""


def page_size(asked: int, default: int, most: int) -> int:
    """Raises InvalidRequestError below 0; more than `most` counts as `most`."""
    if asked < 0:
        raise InvalidRequestError(refusals.between("page_size", 0, most, zero=str(default)), "page_size")
    return min(asked or default, most)


def page_filter(request: Message) -> str:
    """A digest of everything in a request except its page."""
    same = type(request)()
    same.CopyFrom(request)
    for name in ("page_size", "page_token"):
        same.ClearField(name)
    return hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:16]


def encode_token(filter_: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([filter_, *key]).encode()).decode()


def decode_token(token: str, filter_: str, kinds: tuple[type, ...]) -> Key | None:
    """The key in a token, or None without a token. Raises InvalidRequestError when it belongs to another request."""
    if not token:
        return None
    try:
        found = json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token") from error
    if not isinstance(found, list) or [type(part) for part in found] != [str, *kinds] or found[0] != filter_:
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token")
    if not all(map(_is_storable, found)):
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token")
    return found[1:]


def _is_storable(part: str | int) -> bool:
    """Whether the database can have such a value: anybody can forge a token."""
    if isinstance(part, int):
        return -(2**63) <= part < 2**63
    return not any("\ud800" <= character <= "\udfff" for character in part)


def time_of(microseconds: str | int) -> datetime:
    """The time in a token's key, in UTC without a zone. Raises InvalidRequestError for one beyond the calendar."""
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=int(microseconds))
    except OverflowError as error:
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token") from error


def fill_page(messages: Iterable[M], size: int, filter_: str, key: Callable[[M], Key]) -> tuple[list[M], str]:
    """The page and the token of the next one, "" on the last. `messages` should be one more than `size`."""
    return fill_weighed(messages, size, filter_, key, lambda message: message.ByteSize())


def fill_weighed(
    rows: Iterable[R], size: int, filter_: str, key: Callable[[R], Key], weight: Callable[[R], int]
) -> tuple[list[R], str]:
    """`fill_page` for rows that are not single messages; `weight` is a row's size in the answer, in bytes."""
    page: list[R] = []
    used = 0
    for row in rows:
        used += weight(row)
        if len(page) == size or (page and used > MAX_PAGE_BYTES):
            return page, encode_token(filter_, key(page[-1]))
        page.append(row)
    return page, ""
