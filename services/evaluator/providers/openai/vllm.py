"""vLLM (0.32): OpenAI's protocol, and its own paths for health, version and tokenizer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.openai.chat import OPTIONAL, OpenAIProvider
from services.evaluator.providers.protocol.provider import Listing, ProviderError
from services.evaluator.providers.protocol.transport import Transport
from services.evaluator.providers.protocol.usage import count

_HINT = "Start it with `vllm serve MODEL` or correct base_url in the endpoints file."


class VLLMProvider(OpenAIProvider):
    """One vLLM server. Its own paths are next to `/v1`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        root = replace(endpoint, base_url=endpoint.base_url.removesuffix("/v1"))
        self._root = Transport.to(root, _HINT)

    async def list_models(self) -> Listing:
        """Raises ProviderError also when the server answers and its engine is dead."""
        health, version = await asyncio.gather(self._root.get("/health"), self._root.get("/version"))
        if health.status >= 500:
            raise ProviderError(
                f"{self._endpoint.name} answers, but its engine is not healthy. Restart vLLM and check its log.",
                retryable=True,
                unreachable=True,
            )
        listing = await super().list_models()
        number = version.body.get("version") if version.status == 200 and isinstance(version.body, dict) else None
        for model in listing.models:
            if not model.context_length:
                model.context_length = await self._context_length(model.model)
        return Listing(listing.models, f"vLLM {number}" if isinstance(number, str) else "vLLM")

    async def close(self) -> None:
        await super().close()
        await self._root.close()

    async def _further_names(self) -> Mapping[str, str]:
        return OPTIONAL["vllm"]

    async def _context_length(self, model: str) -> int:
        """The length that the tokenizer's path gives for adapters and aliases, whose listing has none; 0 when
        unknown."""
        reply = await self._root.post("/tokenize", {"model": model, "prompt": "a"}, timeout_s=5)
        return count(reply.body, "max_model_len", 2**31 - 1) if reply.status == 200 else 0
