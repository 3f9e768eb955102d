"""Rows of a dataset as lists show them."""

from __future__ import annotations

from services.results.datasets.stored_rows import list_rows
from services.results.items.reads import EXCERPT_BYTES
from tests.dataset_store import DATASET_ID, MemoryStore, row, with_call, with_image
from tests.pictures import PNG
from touchstone.v1.dataset_service_pb2 import ListDatasetRowsRequest, ListDatasetRowsResponse


async def listed(**asked: object) -> ListDatasetRowsResponse:
    store = MemoryStore()
    rows = [row(0), with_image(1, PNG, "x" * 3000), with_call(2, '{"a": "' + "y" * 3000 + '"}'), row(3)]
    store.add(rows, shard_rows=2)
    return await list_rows(store, ListDatasetRowsRequest(dataset_id=DATASET_ID, **asked))  # type: ignore[arg-type]


async def test_a_list_begins_at_the_row_that_is_asked_for_and_goes_on_from_there() -> None:
    page = await listed(first=1, page_size=2)
    assert ([one.custom_id for one in page.rows], page.first) == (["row-1", "row-2"], 1)
    page = await listed(first=1, page_size=2, page_token=page.next_page_token)
    assert ([one.custom_id for one in page.rows], page.first, page.next_page_token) == (["row-3"], 3, "")
    assert not (await listed(first=9)).rows


async def test_lists_leave_out_the_bytes_of_images_and_cut_parts_and_calls() -> None:
    _, picture, called, _ = (await listed()).rows
    text, image = picture.messages[0].parts
    assert (len(text.text.encode()), image.image.data, image.image.size) == (EXCERPT_BYTES, b"", len(PNG))
    assert len(called.messages[1].tool_calls[0].arguments.encode()) == EXCERPT_BYTES
    (whole,) = (await listed(first=1, page_size=1, whole=True)).rows
    assert (whole.messages[0].parts[1].image.data, len(whole.messages[0].content)) == (PNG, 3000)
