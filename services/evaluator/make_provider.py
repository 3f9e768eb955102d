"""Which provider calls which kind of endpoint."""

from __future__ import annotations

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.engine.provider import EngineProvider
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.baseline import BaselineProvider
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.grok import GrokProvider
from services.evaluator.providers.http import HttpProvider
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.openai.vllm import VLLMProvider
from services.evaluator.providers.protocol.provider import Provider


def provider(endpoint: Endpoint) -> Provider:
    """The endpoint's provider. Does not connect yet."""
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
