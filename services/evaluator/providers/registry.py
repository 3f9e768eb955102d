"""Which provider speaks to which kind of endpoint."""

from __future__ import annotations

from services.evaluator.endpoints import Endpoint
from services.evaluator.providers.base import Provider
from services.evaluator.providers.baseline import BaselineProvider
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.openai import OpenAIProvider


def provider(endpoint: Endpoint) -> Provider:
    """The endpoint's provider. Connects to nothing yet."""
    match endpoint.kind:
        case "baseline":
            return BaselineProvider()
        case "ollama":
            return OllamaProvider(endpoint)
        case "openai":
            return OpenAIProvider(endpoint)
        case kind:
            raise ValueError(f"no provider for kind {kind!r}")
