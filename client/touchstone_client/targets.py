"""Which endpoint serves a model: the one given with it, or the one that lists it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import grpc

from touchstone.v1 import endpoint_pb2
from touchstone_client.errors import InvalidError, NotFoundError


class Target(NamedTuple):
    """A model at an endpoint. `endpoint` is empty if it has to be found."""

    model: str
    endpoint: str


def endpoint_of(word: str, endpoints: Collection[endpoint_pb2.Endpoint]) -> str:
    """The endpoint of this name, else the only one of this kind, else the word, which the scheduler then refuses.

    Raises InvalidError for a kind that several endpoints have.
    """
    of_kind = [known.endpoint for known in endpoints if known.kind == word]
    if any(known.endpoint == word for known in endpoints) or not of_kind:
        return word
    if len(of_kind) > 1:
        raise InvalidError.of(f"Several endpoints are of kind {word}: {', '.join(of_kind)}. Name one of them.")
    return of_kind[0]


def said(word: str, endpoint: str, endpoints: Sequence[endpoint_pb2.Endpoint]) -> Target:
    """Parses `model` or `model@endpoint`. A model's id may contain an @, so the part after the last one counts only if
    an endpoint has that name. `endpoint` is for words without one."""
    model, at, place = word.rpartition("@")
    if at and model and any(place in (known.endpoint, known.kind) for known in endpoints):
        return Target(model, endpoint_of(place, endpoints))
    return Target(word, endpoint_of(endpoint, endpoints) if endpoint else "")


def placed(wanted: Sequence[Target], listing: Mapping[str, Collection[str]]) -> list[Target]:
    """Each model with its endpoint. Raises as `found`, and InvalidError for one that is given twice."""
    made = [target if target.endpoint else found(target.model, listing) for target in wanted]
    for place, target in enumerate(made):
        if target in made[:place]:
            raise InvalidError.of(f"{target.model} at {target.endpoint} is named twice. Name it once.")
    return made


def found(model: str, listing: Mapping[str, Collection[str]]) -> Target:
    """The only endpoint that lists the model; `listing` has the models of each endpoint.

    Raises NotFoundError if none does, InvalidError if several do.
    """
    places = [endpoint for endpoint, models in listing.items() if model in models]
    if not places:
        raise NotFoundError(
            f"No endpoint lists the model {model}. List the models: touchstone models. To use a model that is not "
            f"listed, add its endpoint: {model}@endpoint.",
            grpc.StatusCode.NOT_FOUND,
        )
    if len(places) > 1:
        raise InvalidError.of(
            f"Several endpoints have {model}: {', '.join(places)}. Choose one, e.g. {model}@{places[0]}."
        )
    return Target(model, places[0])
