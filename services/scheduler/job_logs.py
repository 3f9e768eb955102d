"""What was logged about a job, page by page."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from services import bus
from services.errors import InvalidRequestError
from services.scheduler.nats_trouble import silent
from services.scheduler.paging import after_of, page_size, token_of
from touchstone.v1 import scheduler_service_pb2 as pb

_DEFAULT, _MOST = 200, 1000


async def list_job_logs(connection: bus.Bus, request: pb.ListJobLogsRequest) -> pb.ListJobLogsResponse:
    """Oldest first. The caller has checked that the job is there. Raises InvalidRequestError, UnavailableError."""
    size = page_size(request.page_size, _DEFAULT, _MOST)
    after = after_of(request.page_token) or "0"
    if not (after.isascii() and after.isdigit() and len(after) < 20):
        raise InvalidRequestError("page_token is not one that this service gave.", "page_token")
    try:
        levels = bus.levels_from(request.level)
    except ValueError as error:
        raise InvalidRequestError(f"level may be {', '.join(bus.LOG_LEVELS)}.", "level") from error
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
