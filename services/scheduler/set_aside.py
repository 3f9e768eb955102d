"""Messages that services could not handle, page by page."""

from __future__ import annotations

from services import bus
from services.errors import InvalidRequestError
from services.scheduler.nats_trouble import silent
from services.scheduler.paging import after_of, page_size, token_of
from touchstone.v1 import scheduler_service_pb2 as pb

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
