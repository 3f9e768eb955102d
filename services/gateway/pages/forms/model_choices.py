"""Models to choose from, over all endpoints."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from services.errors import TouchstoneError
from services.gateway.reads.catalogue import Catalogue
from touchstone.v1 import endpoint_pb2

_STATE = endpoint_pb2.Endpoint


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and why it cannot be chosen, if so."""

    model: endpoint_pb2.Model
    refused: str


@dataclass(frozen=True, slots=True)
class Group:
    """An endpoint's models; `why` says what keeps it from answering."""

    endpoint: endpoint_pb2.Endpoint
    choices: list[Choice]
    why: str


async def groups(catalogue: Catalogue) -> list[Group]:
    """Every endpoint that lists models or could: not those without a key or an evaluator. Raises while the scheduler is
    silent."""
    known = [
        e for e in await catalogue.endpoints() if e.state not in (_STATE.STATE_NOT_CONFIGURED, _STATE.STATE_ABSENT)
    ]
    return list(await asyncio.gather(*(_group(catalogue, endpoint) for endpoint in known)))


async def _group(catalogue: Catalogue, endpoint: endpoint_pb2.Endpoint) -> Group:
    try:
        models = await catalogue.models(endpoint.endpoint)
    except TouchstoneError as error:
        return Group(endpoint, [], error.message)
    why = endpoint.detail if endpoint.state != _STATE.STATE_REACHABLE else ""
    return Group(endpoint, [Choice(model, _refusal(endpoint, model)) for model in models], why)


def _refusal(endpoint: endpoint_pb2.Endpoint, model: endpoint_pb2.Model) -> str:
    if endpoint.max_model_b and model.parameters_b > endpoint.max_model_b:
        return f"more than {endpoint.max_model_b:g} B"
    return ""
