"""Which endpoint has a batch API that is spoken here."""

from __future__ import annotations

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.provider_batches.base import BatchApi
from services.evaluator.provider_batches.gemini import GeminiBatches
from services.evaluator.provider_batches.openai import OpenAIBatches
from services.evaluator.providers.base import Provider
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.openai import OpenAIProvider


def batch_api(endpoint: Endpoint, provider: Provider) -> BatchApi | None:
    """None for kinds without one. Connects to nothing yet."""
    if endpoint.kind == "openai" and isinstance(provider, OpenAIProvider):
        return OpenAIBatches(endpoint, provider)
    if endpoint.kind == "gemini" and isinstance(provider, GeminiProvider):
        return GeminiBatches(endpoint, provider)
    return None
