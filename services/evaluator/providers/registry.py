"""Which provider speaks to which kind of endpoint."""

from __future__ import annotations

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.base import Provider
from services.evaluator.providers.baseline import BaselineProvider
from services.evaluator.providers.engine import EngineProvider
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.grok import GrokProvider
from services.evaluator.providers.http import HttpProvider
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.openai import OpenAIProvider
from services.evaluator.providers.vllm import VLLMProvider


def provider(endpoint: Endpoint) -> Provider:
    """The endpoint's provider. Connects to nothing yet."""
    match endpoint.kind:
        case "baseline":
            return BaselineProvider()
        case "anthropic":
            return AnthropicProvider(endpoint)
        case "gemini":
            return GeminiProvider(endpoint)
        case "http":
            return HttpProvider(endpoint)
        case "ollama":
            return OllamaProvider(endpoint)
        case "openai":
            return OpenAIProvider(endpoint)
        case "vllm":
            return VLLMProvider(endpoint)
        case "grok":
            return GrokProvider(endpoint)
        case "engine":
            return EngineProvider(endpoint, provider)
        case kind:
            raise ValueError(f"no provider for kind {kind!r}")
