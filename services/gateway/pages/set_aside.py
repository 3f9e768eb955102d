"""Messages that services could not handle, as admins see them."""

from __future__ import annotations

from starlette.requests import Request

from services.errors import TouchstoneError
from services.gateway import context
from touchstone.v1 import scheduler_service_pb2

_SHOWN = 20
_PATIENCE_S = 2.0
"""The page comes without the list when it takes longer."""


async def set_aside(request: Request) -> scheduler_service_pb2.ListSetAsideMessagesResponse | None:
    """The oldest of them. None for callers who are not admins, and while the scheduler or NATS is silent."""
    ctx, caller = context.of(request), context.identity(request)
    if not caller.is_admin:
        return None
    call = scheduler_service_pb2.ListSetAsideMessagesRequest(page_size=_SHOWN)
    try:
        return await ctx.backend.ask(ctx.backend.scheduler.ListSetAsideMessages, call, caller, timeout_s=_PATIENCE_S)
    except TouchstoneError:
        return None
