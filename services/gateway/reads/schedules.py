"""A schedule by its id, as pages read it."""

from __future__ import annotations

from services import rpc
from services.errors import NotFoundError
from services.gateway.backend import Backend
from services.words import refusals
from touchstone.v1 import schedule_pb2, scheduler_service_pb2

_PAGE = 500


async def find(backend: Backend, schedule_id: str, caller: rpc.Identity) -> schedule_pb2.Schedule:
    """Raises NotFoundError, also for one that was deleted."""
    call = scheduler_service_pb2.ListSchedulesRequest(page_size=_PAGE)
    while True:
        page = await backend.ask(backend.scheduler.ListSchedules, call, caller)
        for one in page.schedules:
            if one.schedule_id == schedule_id:
                return one
        call.page_token = page.next_page_token
        if not call.page_token:
            raise NotFoundError(refusals.not_found("Schedule", schedule_id[:80]))
