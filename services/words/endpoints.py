"""Kinds of endpoints by their names, and the refusals of a model or key that an endpoint does not have. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from touchstone.v1 import evaluator_pb2
from touchstone.v1.endpoint_pb2 import Endpoint, Model

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "baseline": "baseline",
        "ollama": "Ollama",
        "openai": "OpenAI",
        "vllm": "vLLM",
        "grok": "Grok",
        "gemini": "Gemini",
        "anthropic": "Anthropic",
        "http": "HTTP",
        "engine": "engine",
    }
)
"""What providers call themselves, by kind."""


def named(models: Iterable[Model], name: str) -> Model | None:
    """The listed model of this name. Ollama takes one without a tag for its `latest`."""
    found = {model.model: model for model in models}
    return found.get(name) or found.get(f"{name}:latest")


def no_model(endpoint: Endpoint, name: str) -> str:
    """The endpoint has listed its models, and this is not one of them."""
    near = difflib.get_close_matches(name, [known.model for known in endpoint.models], n=3, cutoff=0.5)
    choice = f"Did you mean {', '.join(near)}?" if near else "Choose one of its models."
    if endpoint.kind == "ollama":
        choice = f"Run `ollama pull {name}` where it runs. {choice if near else ''}".rstrip()
    return f"{endpoint.endpoint} does not have model {name}. {choice}"


def no_key(endpoint: str, kind: str) -> str:
    """The API's documented sentence, with the provider's own name for the usual endpoint of its kind."""
    return f"AI provider error: API key not configured for {LABELS.get(kind, kind) if endpoint == kind else endpoint}"


def not_taken(endpoint: str, parameter: str) -> str:
    """The endpoint's protocol has no field for a parameter of the job."""
    return f"{endpoint} does not take {parameter}. Leave it out of the job's parameters."


EVALUATOR_STATES = ("live", "draining", "drained", "silent")


def evaluator_state(one: evaluator_pb2.Evaluator) -> str:
    """A word of EVALUATOR_STATES. One that an admin drains is drained once it has heard and nothing is left."""
    if not one.live:
        return "silent"
    drained = one.drain_requested and one.draining and not one.units_in_flight
    return "drained" if drained else "draining" if one.draining or one.drain_requested else "live"
