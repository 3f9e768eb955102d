"""Items and events that are written."""

from __future__ import annotations

from services.results.intake import writes
from services.results.items import reads
from services.results.storage.database import Connection
from tests.unit.results.builders import batch
from touchstone.v1 import item_result_pb2, results_service_pb2


def stored(connection: Connection, item: int = 0) -> results_service_pb2.StoredItem:
    return reads.get_item(connection, results_service_pb2.GetItemRequest(job_id="j", task="t", item=item))


def store(connection: Connection, *results: item_result_pb2.ItemResult, attempt: int = 1) -> None:
    writes.store_items(connection, [batch("j", "t", results, attempt)])
