"""The addresses of OpenAI's API."""

from __future__ import annotations

from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.gateway.api.declare.endpoint import Resource
from services.gateway.openai import batches, files, models

PREFIX = "/v1/"
UPLOAD = "/v1/files"


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(
        404,
        f"{scope['path'][:200]!r} does not exist. Files are at /v1/files, batches at /v1/batches, models at "
        "/v1/models.",
    )


_LISTED = sorted((*files.ENDPOINTS, *batches.ENDPOINTS, *models.ENDPOINTS), key=lambda one: ("{" in one.path, one.path))
_PATHS = [Route(path, Resource(list(endpoints))) for path, endpoints in groupby(_LISTED, key=lambda one: one.path)]
routes = [Mount("/v1", Router(_PATHS, redirect_slashes=False, default=_nothing))]
