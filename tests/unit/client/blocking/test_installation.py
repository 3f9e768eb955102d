"""Reading about the installation with the blocking client."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fakes import Fakes
from touchstone.v1 import scheduler_service_pb2, set_aside_pb2
from touchstone_client import AsyncClient, Client


def page_of_set_aside(request: Any) -> scheduler_service_pb2.ListSetAsideMessagesResponse:
    message = set_aside_pb2.SetAsideMessage(service="scheduler", sequence=8 if request.page_token else 7)
    return scheduler_service_pb2.ListSetAsideMessagesResponse(
        messages=[message], next_page_token="" if request.page_token else "more", total=2
    )


async def test_messages_set_aside_come_from_page_after_page(fakes: Fakes) -> None:
    fakes.answers["ListSetAsideMessages"] = page_of_set_aside
    with Client() as client:
        assert [message.sequence for message in client.set_aside_messages()] == [7, 8]
    async with AsyncClient() as awaited:
        assert [message.sequence async for message in awaited.set_aside_messages()] == [7, 8]
