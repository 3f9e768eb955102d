"""`GET /healthz`: the process lives. `GET /readyz`: it can serve, as both services answer."""

from __future__ import annotations

from starlette.requests import Request

from services.gateway import context
from services.gateway.access.auth import ClosedAccess
from services.gateway.http.responses import JSONResponse


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
