"""Items as they are listed."""

from __future__ import annotations

from collections.abc import Iterator

from services.results.items import reads
from services.results.storage.database import Connection
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest


def found(connection: Connection, query: str = "", **conditions: object) -> list[int]:
    request = ListItemsRequest(job_id="j", query=query, conditions=pb.ItemConditions(**conditions))  # type: ignore[arg-type]
    page = reads.list_items(connection, request)
    assert page.total_size == page.count_all == len(page.items)
    return [one.result.item for one in page.items]


def items_pages(connection: Connection, **request: object) -> Iterator[pb.ListItemsResponse]:
    token = ""
    while True:
        page = reads.list_items(connection, ListItemsRequest(job_id="j", page_token=token, **request))  # type: ignore[arg-type]
        yield page
        token = page.next_page_token
        if not token:
            return
