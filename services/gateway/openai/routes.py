"""OpenAI's API: its addresses, and the models that can be called."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from services.errors import NotFoundError
from services.gateway.api.declare.endpoint import OPENAI, Call, Endpoint, Resource
from services.gateway.fields.schema import COUNT, STRING, about, enum, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.openai import batches, calls, files
from services.gateway.openai.objects import listing
from services.gateway.reads.catalogue import Catalogue

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
    places = list(dict.fromkeys(await catalogue.listed_keys()))
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


_MODEL = shape(
    {
        "id": about(STRING, "The name by which the model is called."),
        "object": about(enum("model"), "Always `model`."),
        "created": about(COUNT, "Always 0: the time is unknown."),
        "owned_by": about(STRING, "The endpoint that has the model."),
    },
    name="OpenAIModel",
)
ENDPOINTS = (
    Endpoint(
        "GET",
        "/models",
        list_models,
        "listCallableModels",
        "Models that can be called, also in batches.",
        answer=listing(_MODEL, "OpenAIModelList"),
        base=OPENAI,
    ),
    Endpoint("GET", "/models/{model:path}", retrieve, "getCallableModel", "One model.", answer=_MODEL, base=OPENAI),
)


PREFIX = "/v1/"
UPLOAD = "/v1/files"


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(
        404,
        f"{scope['path'][:200]!r} does not exist. Chat completions are at /v1/chat/completions, responses at "
        "/v1/responses, files at /v1/files, batches at /v1/batches, models at /v1/models.",
    )


LISTED = (*calls.ENDPOINTS, *files.ENDPOINTS, *batches.ENDPOINTS, *ENDPOINTS)
"""Every endpoint of OpenAI's API, in the document's order."""
_ORDERED = sorted(LISTED, key=lambda one: ("{" in one.path, one.path))
_PATHS = [Route(path, Resource(list(endpoints))) for path, endpoints in groupby(_ORDERED, key=lambda one: one.path)]
routes = [Mount(OPENAI, Router(_PATHS, redirect_slashes=False, default=_nothing))]
