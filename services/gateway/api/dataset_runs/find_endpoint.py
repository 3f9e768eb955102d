"""Where a model that a user names is reached."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable

from services.errors import InvalidRequestError, NotFoundError
from services.gateway.reads.catalogue import Catalogue
from touchstone.v1 import endpoint_pb2

FIELD = "model_id"


async def place_of(catalogue: Catalogue, model_id: str, provider: str = "") -> tuple[str, str]:
    """(endpoint, model) of `model` or `model@endpoint`. Without a provider, the only endpoint that lists the model.

    Raises NotFoundError for a model that nobody lists, InvalidRequestError for an unknown provider, or where several
    endpoints have it, naming them.
    """
    model_id = model_id.strip()
    if provider:
        return await _at(catalogue, provider, model_id)
    endpoints = await catalogue.endpoints()
    model, _, after = model_id.rpartition("@")
    if model and any(after in (known.endpoint, known.kind) for known in endpoints):
        return await _at(catalogue, after, model)
    names = [known.endpoint for known in endpoints]
    lists = dict(zip(names, await asyncio.gather(*(catalogue.models(name) for name in names)), strict=True))
    found = [name for name, listed in lists.items() if _has(listed, model_id)]
    if len(found) > 1:
        raise InvalidRequestError(
            f"Several endpoints have model {model_id!r}: {', '.join(found)}. Name one of them as provider, or write "
            f"{model_id}@{found[0]}.",
            FIELD,
        )
    if not found:
        listed = [model.model for models in lists.values() for model in models]
        raise NotFoundError(f"Model {model_id[:200]!r} not found at any endpoint. {_near(model_id, listed)}".rstrip())
    return found[0], model_id


async def _at(catalogue: Catalogue, provider: str, model: str) -> tuple[str, str]:
    endpoint = await catalogue.endpoint(provider, "provider")
    listed = await catalogue.models(endpoint.endpoint)
    # An endpoint that has not listed its models is not judged here; planning the run does.
    if listed and not _has(listed, model):
        near = _near(model, [known.model for known in listed])
        raise NotFoundError(f"Model {model[:200]!r} not found at {endpoint.endpoint}. {near}".rstrip())
    return endpoint.endpoint, model


def _has(listed: Iterable[endpoint_pb2.Model], model: str) -> bool:
    """Ollama takes a name without a tag for its `latest`."""
    return any(known.model in (model, f"{model}:latest") for known in listed)


def _near(model: str, listed: list[str]) -> str:
    near = difflib.get_close_matches(model, [*dict.fromkeys(listed)], n=3, cutoff=0.5)
    return f"Did you mean {', '.join(near)}?" if near else ""
