"""Reading results with the asynchronous client."""

from __future__ import annotations

from tests.unit.client.fakes import JOB, Fakes, page_of_items
from touchstone_client import AsyncClient


async def test_items_are_awaited_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListItems"] = page_of_items
    async with AsyncClient() as client:
        assert [stored.result.item async for stored in client.items(JOB)] == [0, 1, 2, 3, 4, 5]
