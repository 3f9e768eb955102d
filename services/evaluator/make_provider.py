"""Which provider calls which kind of endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.engine.provider import EngineProvider
from services.evaluator.items.task import Message
from services.evaluator.providers import anthropic_wire, gemini_wire, grok_wire, http, ollama_wire
from services.evaluator.providers.anthropic import AnthropicProvider
from services.evaluator.providers.baseline import BaselineProvider
from services.evaluator.providers.gemini import GeminiProvider
from services.evaluator.providers.grok import GrokProvider
from services.evaluator.providers.http import HttpProvider
from services.evaluator.providers.ollama import OllamaProvider
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.openai.vllm import VLLMProvider
from services.evaluator.providers.protocol import common_form
from services.evaluator.providers.protocol.provider import Provider, ProviderError
from touchstone.v1.endpoint_pb2 import Capabilities


def provider(endpoint: Endpoint) -> Provider:
    """The provider of an endpoint of a built-in kind. Does not connect yet."""
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


def check_content(
    kind: str,
    endpoint: Endpoint | None,
    model: str,
    takes: Capabilities,
    messages: Sequence[Message],
    fields: Mapping[str, Any],
) -> None:
    """Raises ProviderError for what a model of such an endpoint cannot be sent, or asked for, of messages and further
    fields. `endpoint` is None where this evaluator does not serve it: then its kind alone tells."""
    if takes.HasField("images") and not takes.images and any(True for _ in common_form.images(messages)):
        raise ProviderError(
            f"{model} takes no images. Choose another model, or leave them out.", fatal=True, status=400
        )
    if takes.HasField("tools") and not takes.tools and common_form.take(dict(fields)).functions:
        raise ProviderError(
            f"{model} calls no tools. Choose another model, or leave tools out.", fatal=True, status=400
        )
    match kind:
        case "anthropic":
            anthropic_wire.check(messages, dict(fields))
        case "gemini":
            gemini_wire.check(messages, dict(fields))
        case "ollama":
            ollama_wire.check(messages, dict(fields))
        case "grok" if endpoint is None or endpoint.api != "chat":
            grok_wire.check(messages, dict(fields))
        case "grok":
            common_form.check_images("xAI", messages, grok_wire.IMAGES, detail=True)
        case "http" if endpoint is not None:
            http.check(endpoint, messages, dict(fields))
