"""Pages of lists, of the log lines of jobs, and of messages that services could not handle."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError

from services import bus
from services.errors import InvalidRequestError, UnavailableError
from services.scheduler.nats.lease import silent
from services.words import refusals
from touchstone.v1 import scheduler_service_pb2 as pb

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
        raise InvalidRequestError(refusals.between("page_size", 0, most, zero="the default"), "page_size")
    return size or default


def token_of(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def after_of(token: str) -> str:
    """The last key of the page before; empty for an empty token. Raises InvalidRequestError."""
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token") from error


_DEFAULT_LINES, _MOST_LINES = 200, 1000

log = logging.getLogger(__name__)

_DEFAULT_MESSAGES, _MOST_MESSAGES = 100, 500


async def list_job_logs(connection: bus.Bus, request: pb.ListJobLogsRequest) -> pb.ListJobLogsResponse:
    """Oldest first. The caller has checked that the job exists. Raises InvalidRequestError, UnavailableError."""
    size = page_size(request.page_size, _DEFAULT_LINES, _MOST_LINES)
    after = after_of(request.page_token) or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 20):
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token")
    try:
        levels = bus.levels_from(request.level)
    except ValueError as error:
        raise InvalidRequestError(refusals.not_valid(request.level, "level", bus.LOG_LEVELS), "level") from error
    with silent():
        found = await connection.read_logs(request.job_id, levels, int(after), size + 1)
    page = found[:size]
    return pb.ListJobLogsResponse(
        lines=[_line(line) for _, line in page],
        next_page_token=token_of(str(page[-1][0])) if len(found) > size else "",
    )


def _line(stored: bytes) -> pb.LogLine:
    try:
        return pb.LogLine.FromString(stored)
    except DecodeError:
        return pb.LogLine(level="warning", text="This line cannot be read.")


async def list_set_aside(
    connection: bus.Bus, request: pb.ListSetAsideMessagesRequest
) -> pb.ListSetAsideMessagesResponse:
    """Oldest first. Raises InvalidRequestError, UnavailableError."""
    size = page_size(request.page_size, _DEFAULT_MESSAGES, _MOST_MESSAGES)
    after = after_of(request.page_token) or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 20):
        raise InvalidRequestError(refusals.PAGE_TOKEN, "page_token")
    with silent():
        total = await bus.count_set_aside(connection)
        found = await bus.list_set_aside(connection, int(after), size + 1) if total else []
    page = found[:size]
    return pb.ListSetAsideMessagesResponse(
        messages=[message for _, message in page],
        next_page_token=token_of(str(page[-1][0])) if len(found) > size else "",
        total=total,
    )


async def log_set_aside(connection: bus.Bus) -> None:
    """Logs how many there are, if any. A leadership does not end because NATS cannot count them."""
    try:
        with silent():
            total = await bus.count_set_aside(connection)
    except UnavailableError as error:
        log.warning("cannot count the messages that were set aside: %s", error)
        return
    if total:
        what = "1 message was set aside; ListSetAsideMessages lists it"
        if total > 1:
            what = f"{total:,} messages were set aside; ListSetAsideMessages lists them"
        log.warning(what)
