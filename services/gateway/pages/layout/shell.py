"""The frame of every page: who is signed in, the queue, the endpoints' health. It is almost empty while the scheduler
is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response

from services.errors import NoRoomError, TouchstoneError
from services.gateway import context, replica
from services.gateway.access.auth import Caller
from services.gateway.access.claims import USER_PREFIX
from touchstone.v1 import endpoint_pb2, queue_pb2


@dataclass(frozen=True, slots=True)
class Shell:
    """`queue` is None while the scheduler does not answer; `caller` is None before signing in."""

    page: str
    caller: Caller | None
    queue: queue_pb2.Queue | None
    endpoints: list[endpoint_pb2.Endpoint]
    notice: str = ""
    """What everybody should know, such as that the disk is full."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """What the page shows, as the event stream names it; empty if that is not known."""
    as_of: str = ""
    """When figures of a copy of the results were so, as `Age.clock`; empty if the results service answered."""

    @property
    def user(self) -> str:
        return self.caller.identity.user if self.caller else ""

    @property
    def initials(self) -> str:
        words = self.user.removeprefix(USER_PREFIX).replace("-", " ").replace(".", " ").replace("_", " ").split()
        return "".join(word[0] for word in words[:2]).upper()

    @property
    def csrf(self) -> str:
        return self.caller.csrf if self.caller else ""


def is_fragment(connection: HTTPConnection) -> bool:
    """Whether htmx asks for a part of the page: not on navigation and not when history is restored."""
    headers = connection.headers
    return "hx-request" in headers and "hx-boosted" not in headers and "hx-history-restore-request" not in headers


def fragment(connection: HTTPConnection, template: str, values: Mapping[str, object], status: int = 200) -> Response:
    """A part of a page: the same template that the page includes."""
    ctx = context.of(connection)
    shell = Shell("", connection.scope.get("state", {}).get("caller"), None, [], as_of=_as_of())
    html = ctx.templates.get_template(template).render(shell=shell, **values)
    if shell.as_of:
        line = ctx.templates.get_template("_silence.html").render(shell=shell)
        html += f'<hx-partial hx-target="#silence" hx-swap="outerMorph">{line}</hx-partial>'
    return HTMLResponse(html, status, {"Vary": "HX-Request"})


async def render(
    connection: HTTPConnection, template: str, page: str, values: Mapping[str, object], status: int = 200
) -> Response:
    """A whole page inside the shell."""
    ctx = context.of(connection)
    shell = await load(connection, page)
    html = ctx.templates.get_template(template).render(shell=shell, **values)
    return HTMLResponse(html, status, {"Vary": "HX-Request"})


async def load(connection: HTTPConnection, page: str) -> Shell:
    ctx = context.of(connection)
    state = connection.scope.get("state", {})
    caller: Caller | None = state.get("caller")
    queue: queue_pb2.Queue | None = None
    endpoints: list[endpoint_pb2.Endpoint] = []
    notice = ""
    if caller is not None:
        try:
            queue, endpoints = await asyncio.gather(ctx.catalogue.queue(), ctx.catalogue.endpoints())
        except NoRoomError as error:
            notice = error.message
        except TouchstoneError:
            queue = None
    notice = notice or (queue.notice if queue else "")
    return Shell(page, caller, queue, endpoints, notice, state.get("marks", {}), _as_of())


def _as_of() -> str:
    found = replica.age()
    return found.clock if found else ""


def go_to(request: HTTPConnection, address: str) -> Response:
    """Sends the browser on: by header for htmx, by redirect without it."""
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)
