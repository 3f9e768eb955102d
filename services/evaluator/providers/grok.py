"""xAI's Grok, over `/responses`, which xAI recommends, or the deprecated `/chat/completions`: the endpoint's key `api`.

`/responses` has no seed and no stop sequences; a job that sets a seed needs `api = "chat"`. The effort of reasoning is
`extra.reasoning_effort` in both, checked against the values that the model's listing names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers import grok_wire
from services.evaluator.providers.openai import errors
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol import failures
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request
from services.evaluator.providers.protocol.sampling import extra
from touchstone.v1 import endpoint_pb2

_EFFORT = "reasoning_effort"


class GrokProvider(OpenAIProvider):
    """xAI's service."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._chat = endpoint.api == "chat"
        super().__init__(endpoint, grok_wire.CHAT if self._chat else grok_wire.RESPONSES)
        self._efforts: dict[str, tuple[str, ...] | None] = {}

    async def list_models(self) -> Listing:
        failures.require_key(self._endpoint)
        reply = await self._http.get("/language-models")
        entries = reply.body.get("models") if isinstance(reply.body, dict) else None
        if reply.status != 200 or not isinstance(entries, list):
            raise errors.failure(self._endpoint, reply, "", "/language-models")
        found: dict[str, endpoint_pb2.Model] = {}
        for entry in entries:
            if isinstance(entry, dict):
                for model in grok_wire.models(entry):
                    found[model.model] = model
                    self._efforts[model.model] = grok_wire.efforts(entry)
        return Listing(self._remember(found), "xAI")

    def _names(self, takes: endpoint_pb2.Capabilities) -> Mapping[str, str]:
        names = {"temperature": "temperature", "top_p": "top_p"}
        if self._chat:
            return names | {"seed": "seed", "max_tokens": "max_completion_tokens"}
        return names | {"max_tokens": "max_output_tokens"}

    def _extra(self, request: Request, written: Collection[str]) -> dict[str, Any]:
        further = extra(request.sampling, written)
        effort = further.get(_EFFORT)
        taken = self._efforts.get(request.model)
        if effort is not None and taken is not None and effort not in taken:
            choice = f"Choose one of {', '.join(taken)}." if taken else "Leave it out."
            raise ProviderError(f"{request.model} does not take {_EFFORT} {effort!r}. {choice}", fatal=True)
        if effort is not None and not self._chat:
            del further[_EFFORT]
            further["reasoning"] = {"effort": effort}
        return further
