"""The application: routes and middleware around a `Context`, and errors as JSON or as a page.

`GET /healthz`: the process lives. `GET /readyz`: it can serve, as both services answer.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from services.errors import AwayError, NoRoomError, TouchstoneError, UnauthenticatedError
from services.gateway import context, replica
from services.gateway.access.auth import ClosedAccess
from services.gateway.api import routes as api
from services.gateway.context import Context
from services.gateway.http import middleware
from services.gateway.http.counting import Counting
from services.gateway.http.responses import JSONResponse, headers_of, json_error, sentence_of, status_of
from services.gateway.openai import routes as openai
from services.gateway.openai.errors import openai_error
from services.gateway.pages import routes as pages
from services.gateway.pages.layout.login import login_address
from services.gateway.pages.layout.shell import render
from services.gateway.pages.templates import Static
from services.telemetry import metrics, traces

AGAIN_S = 5
"""A page that only waits for a service or for room is read again after this time."""
_NATS_S = 1.5
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Not possible now",
    413: "Too large",
    429: "Too many",
    503: "A service does not answer",
}


def create_app(context: Context) -> Starlette:
    """The ASGI application. Nothing connects here: `context` brings its channels."""
    routes: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Mount("/static", Static()),
        *api.routes,
        *openai.routes,
        *pages.routes,
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            *([Middleware(Counting, routes=routes)] if metrics.HTTP_REQUESTS.on or traces.on() else []),
            Middleware(middleware.SecurityHeaders),
            Middleware(middleware.Compression),
            *([Middleware(replica.Reading)] if context.settings.replica else []),
            Middleware(middleware.Errors, answer=_answer),
            Middleware(middleware.BodyLimit),
            Middleware(middleware.Access),
        ],
        # Both kinds pass through to middleware.Errors, which answers them in one place.
        exception_handlers={HTTPException: _raise, TouchstoneError: _raise},
    )
    app.state.context = context
    return app


async def _raise(_: HTTPConnection, error: Exception) -> Response:
    raise error


async def _answer(connection: HTTPConnection, error: Exception) -> Response:
    """JSON for the API, for htmx (its toast shows the sentence) and for clients that do not ask for HTML."""
    if connection.scope["path"].startswith(openai.PREFIX):
        return openai_error(error)
    wants_page = "text/html" in connection.headers.get("accept", "") and "hx-request" not in connection.headers
    if connection.scope["path"].startswith(middleware.API) or not wants_page:
        return json_error(error)
    return await _page_error(connection, error)


async def _page_error(connection: HTTPConnection, error: Exception) -> Response:
    """The error as a page; without a session, the way to sign in."""
    if isinstance(error, UnauthenticatedError) and context.of(connection).access.sessions is not None:
        return RedirectResponse(login_address(connection), 303)
    status = status_of(error)
    sentence = sentence_of(error)
    if status == 404 and sentence == "Not Found":
        sentence = "Page not found. The sidebar lists all pages."
    no_room = isinstance(error, NoRoomError)
    title = "No room on the disk" if no_room else _TITLES.get(status, "Something went wrong")
    passing = isinstance(error, AwayError | NoRoomError) and connection.scope["method"] == "GET"
    values = {
        "title": title,
        "sentence": sentence,
        "no_room": no_room,
        "again_s": AGAIN_S if passing else 0,
        # What is wrong with a request, or gone, is so again.
        "may_pass": status >= 500 or status in (408, 429),
    }
    response = await render(connection, "error.html", "", values, status)
    response.headers.update(headers_of(error))
    return response


async def healthz(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> JSONResponse:
    """503 until the scheduler and the results service, or its copy, say that they are serving, users can be let in, and
    NATS answers, if it ever did."""
    ctx = context.of(request)
    health = await ctx.backend.health()
    if not health["results"] and await ctx.backend.copy_serves():
        health["replica"] = True
    if ctx.bus is not None:
        health["nats"] = await ctx.bus.answers(_NATS_S)
    enough = all(up for name, up in health.items() if name != "results" or "replica" not in health)
    ready = enough and not isinstance(ctx.access, ClosedAccess)
    return JSONResponse(
        {"ready": ready, **{name: "serving" if up else "not serving" for name, up in health.items()}},
        200 if ready else 503,
        None if ready else {"Retry-After": "1"},
    )
