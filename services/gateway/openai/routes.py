"""OpenAI's API: its addresses, the models that batches can be run on, and errors in the shape that its clients read."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.errors import BadLinesError, InvalidRequestError, NotFoundError
from services.gateway.api.declare.endpoint import Call, Endpoint, Resource
from services.gateway.http.responses import FieldErrors, JSONResponse, headers_of, sentence_of, status_of
from services.gateway.openai import batches, files
from services.gateway.reads.catalogue import Catalogue

BASE = "/v1"
Json = dict[str, Any]


async def list_models(call: Call) -> JSONResponse:
    """Every endpoint's models, each by the name that a batch's lines take."""
    return JSONResponse({"object": "list", "data": await _objects(call.ctx.catalogue)})


async def retrieve(call: Call) -> JSONResponse:
    name = call.path["model"]
    found = next((one for one in await _objects(call.ctx.catalogue) if one["id"] == name), None)
    if found is None:
        raise NotFoundError(f"Model {name[:80]!r} not found at any endpoint. GET /v1/models lists the models.")
    return JSONResponse(found)


async def _objects(catalogue: Catalogue) -> list[Json]:
    """`model`, or `model@endpoint` if several endpoints have it. The time of a model's creation is unknown: 0."""
    places = list(dict.fromkeys(await catalogue.model_keys()))
    times = Counter(model for _, model in places)
    return [
        {
            "id": model if times[model] == 1 else f"{model}@{endpoint}",
            "object": "model",
            "created": 0,
            "owned_by": endpoint,
        }
        for endpoint, model in places
    ]


ENDPOINTS = (
    Endpoint("GET", "/models", list_models, "listModels", "Models that batches run on.", base=BASE),
    Endpoint("GET", "/models/{model:path}", retrieve, "getModel", "One model.", base=BASE),
)


_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded"}
_SHOWN_LINES = 10
_DATASET = re.compile(r"\bds_([0-9a-f]{32})\b")
_MISSING = re.compile(r"^Dataset (file-[0-9a-f]{32}) not found")


def openai_error(error: Exception) -> JSONResponse:
    """`{"error": {message, type, param, code}}`. Wrong fields are 400 here, as there."""
    status = 400 if isinstance(error, FieldErrors) else status_of(error)
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    body: dict[str, Any] = {
        "message": _sentence(error),
        "type": kind,
        "param": _param(error),
        "code": _CODES.get(status),
    }
    headers = headers_of(error)
    # The clients repeat a 409; ours means that a file is in use, which a second try does not change.
    if status == 409:
        headers["x-should-retry"] = "false"
    return JSONResponse({"error": body}, status, headers)


def _sentence(error: Exception) -> str:
    if isinstance(error, BadLinesError):
        # The first one is in the message.
        lines = (f"Line {number}: {reason}" for number, reason in error.lines[1:_SHOWN_LINES])
        return " ".join((error.message, *lines))
    # The services name datasets, which are files here.
    words = _DATASET.sub(r"file-\1", sentence_of(error))
    return _MISSING.sub(r"No such File object: \1", words)


def _param(error: Exception) -> str | None:
    if isinstance(error, FieldErrors):
        return error.problems[0][0]
    if isinstance(error, InvalidRequestError):
        return error.field or None
    return None


PREFIX = "/v1/"
UPLOAD = "/v1/files"


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(
        404,
        f"{scope['path'][:200]!r} does not exist. Files are at /v1/files, batches at /v1/batches, models at "
        "/v1/models.",
    )


_LISTED = sorted((*files.ENDPOINTS, *batches.ENDPOINTS, *ENDPOINTS), key=lambda one: ("{" in one.path, one.path))
_PATHS = [Route(path, Resource(list(endpoints))) for path, endpoints in groupby(_LISTED, key=lambda one: one.path)]
routes = [Mount("/v1", Router(_PATHS, redirect_slashes=False, default=_nothing))]
