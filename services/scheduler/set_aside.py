"""Messages that services could not handle, page by page."""

from __future__ import annotations

import logging

from services import bus
from services.errors import InvalidRequestError, UnavailableError
from services.scheduler.nats_trouble import silent
from services.scheduler.paging import after_of, page_size, token_of
from touchstone.v1 import scheduler_service_pb2 as pb

log = logging.getLogger(__name__)

_DEFAULT, _MOST = 100, 500


async def list_set_aside(
    connection: bus.Bus, request: pb.ListSetAsideMessagesRequest
) -> pb.ListSetAsideMessagesResponse:
    """Oldest first. Raises InvalidRequestError, UnavailableError."""
    size = page_size(request.page_size, _DEFAULT, _MOST)
    after = after_of(request.page_token) or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 20):
        raise InvalidRequestError("page_token is not one that this service gave.", "page_token")
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
        log.warning("the messages that are set aside cannot be counted: %s", error)
        return
    if total:
        what = "1 message is set aside; ListSetAsideMessages lists it"
        if total > 1:
            what = f"{total:,} messages are set aside; ListSetAsideMessages lists them"
        log.warning(what)
