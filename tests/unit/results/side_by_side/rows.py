"""Jobs whose rows are shown side by side."""

from __future__ import annotations

from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListSideBySideRequest as Ask


def ask(
    connection: Connection, *jobs: str, visible: Visibility = EVERYTHING, **fields: object
) -> pb.ListSideBySideResponse:
    request = Ask(job_ids=jobs or ("a", "b"), **fields)  # type: ignore[arg-type]
    return SideBySide().rows(connection, request, visible)


def items(page: pb.ListSideBySideResponse) -> list[int]:
    return [row.item for row in page.rows]


def pair(connection: Connection, here: str, there: str) -> None:
    """Two runs of a suite, by which items are right."""
    for job_id, pattern in (("a", here), ("b", there)):
        finished(connection, job_id, task("t", right_or_wrong(pattern)), model=f"m{job_id}")


def walk(connection: Connection, asked: SideBySide, **fields: object) -> list[str]:
    found, token = [], ""
    while True:
        request = Ask(job_ids=["a", "b"], page_size=3, page_token=token, **fields)  # type: ignore[arg-type]
        page = asked.rows(connection, request)
        assert page.total_size == page.count_all == 10
        found += [one.custom_id for one in page.rows]
        token = page.next_page_token
        if not token:
            return found
