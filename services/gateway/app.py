"""The application: routes and middleware around a `Context`.

`GET /healthz`: the process lives. `GET /readyz`: it can serve, as both services answer.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from services.errors import TouchstoneError
from services.gateway import context
from services.gateway.access.auth import ClosedAccess
from services.gateway.api import routes as api
from services.gateway.context import Context
from services.gateway.http import middleware
from services.gateway.http.responses import JSONResponse, json_error
from services.gateway.openai import routes as openai
from services.gateway.openai.errors import openai_error
from services.gateway.pages import routes as pages
from services.gateway.pages.layout.failure import page_error
from services.gateway.pages.templates import Static


def create_app(context: Context) -> Starlette:
    """The ASGI application. Nothing connects here: `context` brings its channels."""
    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Mount("/static", Static()),
            *api.routes,
            *openai.routes,
            *pages.routes,
        ],
        middleware=[
            Middleware(middleware.SecurityHeaders),
            Middleware(middleware.Compression),
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
    return await page_error(connection, error)


async def healthz(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> JSONResponse:
    """503 until the scheduler and the results service say that they are serving, and users can be let in."""
    ctx = context.of(request)
    health = await ctx.backend.health()
    ready = all(health.values()) and not isinstance(ctx.access, ClosedAccess)
    return JSONResponse(
        {"ready": ready, **{name: "serving" if up else "not serving" for name, up in health.items()}},
        200 if ready else 503,
        None if ready else {"Retry-After": "1"},
    )
