"""`/v1/models`: what batches can be run on."""

from __future__ import annotations

from collections import Counter
from typing import Any

from services.errors import NotFoundError
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.http.responses import JSONResponse
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
    """`model`, or `model@endpoint` where several endpoints have it. When a model was made is not known: 0."""
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
