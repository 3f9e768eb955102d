"""Any server that speaks OpenAI's chat completions: OpenAI, llama.cpp, LM Studio, SGLang, litellm, OpenRouter.

What is sent. The parameters that `capabilities.resolve` gives: `temperature`, `top_p`, `seed` and `max_tokens`
(`max_completion_tokens` for OpenAI's own service and its reasoning models, the only name that all of them take).
`top_k`, `min_p` and `repeat_penalty` are not part of the protocol: they go only to servers that read them, as known
from the owner in their model listing. Elsewhere, as with `context_length`, which no server takes per request, the job
fails and says so: a parameter that is recorded must have been sent. `extra` is merged into the body last and passes
anything.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import OPENAI_URL
from services.evaluator.items.task import Response
from services.evaluator.providers.openai import errors
from services.evaluator.providers.openai import wire as openai_wire
from services.evaluator.providers.openai.loglikelihood import LogLikelihoods
from services.evaluator.providers.openai.relay import Relay, Relayed
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities, failures, usage
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.evaluator.providers.protocol.sampling import Beside, Preparations, extra
from services.evaluator.providers.protocol.transport import Reply, Transport
from touchstone.v1 import endpoint_pb2

OPTIONAL: Mapping[str, Mapping[str, str]] = {
    "vllm": {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    "sglang": {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"},
    "llamacpp": {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repeat_penalty"},
}
_UNKNOWN = {"min_p": "min_p"}
"""For unknown servers. Those that take the parameter use this name, and rows used it before Touchstone had the
parameter."""
_PRODUCTS = {"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp"}
# OpenAI's own service refuses more.
_MOST_STOPS = 4
# OpenAI lists all of its models, without saying what each is for.
_NO_TEXT = re.compile(r"embedding|moderation|whisper|transcribe|tts|audio|realtime|dall-e|image|sora")


class OpenAIProvider:
    """One OpenAI-compatible endpoint."""

    def __init__(self, endpoint: Endpoint, wire: openai_wire.Wire = openai_wire.CHAT) -> None:
        self._endpoint = endpoint
        self._http = Transport.to(endpoint, "Start the server or correct base_url in the endpoints file.")
        self._wire = wire
        self._official = endpoint.base_url.startswith(OPENAI_URL)
        self._most_stops = _MOST_STOPS if self._official else None
        self._listed: dict[str, endpoint_pb2.Model] | None = None
        self._owner = ""
        self._listing = asyncio.Lock()
        self._preparations = Preparations(self._beside)
        self._loglikelihoods = LogLikelihoods(endpoint, self._http)

    async def list_models(self) -> Listing:
        failures.require_key(self._endpoint)
        reply = await self._http.get("/models")
        entries: list[dict[str, Any]] = []
        if reply.status == 200 and isinstance(reply.body, dict) and isinstance(reply.body.get("data"), list):
            entries = [entry for entry in usage.entries(reply.body, "data") if usage.string(entry, "id")]
            if self._official:
                entries = [entry for entry in entries if not _NO_TEXT.search(entry["id"])]
        elif not (self._endpoint.models and reply.status in (404, 405)):
            raise errors.failure(self._endpoint, reply, "", "/models")
        found = {entry["id"]: openai_wire.model(entry) for entry in entries}
        owners = {usage.string(entry, "owned_by").lower() for entry in entries}
        self._owner = next((owner for owner in OPTIONAL if owner in owners), "")
        return Listing(self._remember(found), _PRODUCTS.get(self._owner, ""))

    async def generate(self, request: Request) -> Response:
        own, beside = await self._parts(request)
        wire = self._wire
        if request.stream:
            reply = await self._http.stream(wire.path, own, wire.fold(), request.heard, beside.encoded)
        else:
            reply = await self._http.post(wire.path, own, beside.encoded)
        return self.read(reply, request.model, beside.json, request.prices)

    async def written(self, request: Request) -> tuple[dict[str, Any], str]:
        """The body of a request, and the part of it that is recorded. Raises ProviderError."""
        own, beside = await self._parts(request)
        return {**own, **beside.fields}, beside.json

    def read(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None = None) -> Response:
        """The answer, at the job's prices. Raises ProviderError."""
        if reply.status != 200:
            return errors.refusal(self._endpoint, reply, model, parameters, self._wire.path)
        response = self._wire.response(self._endpoint, reply)
        return replace(response, parameters=parameters, cost_usd=self._cost(model, response, of_job))

    async def _parts(self, request: Request) -> tuple[dict[str, Any], Beside]:
        """The members of the body that are the request's own, and those that it shares. Raises ProviderError."""
        failures.require_key(self._endpoint)
        await self._refuse_larger(request.model)
        beside = await self._preparations.of(request)
        return {"model": request.model, self._wire.prompt: self._wire.messages(request.item.messages)}, beside

    async def relay(self, relay: Relay) -> Relayed:
        """A request as its sender wrote it, under the endpoint's key."""
        failures.require_key(self._endpoint)
        await self._refuse_larger(relay.model)
        body, wire = {**relay.body, "model": relay.model}, relay.wire
        if relay.heard is None:
            reply = await self._http.post(wire.path, body)
        else:
            reply = await self._http.stream(wire.path, body, wire.fold(), relay.heard)
        response = None
        if reply.status == 200:
            # What cannot be read here may still be an answer to its sender.
            with suppress(ProviderError):
                response = wire.response(self._endpoint, reply)
                response = replace(response, cost_usd=self._cost(relay.model, response, None))
        return Relayed(reply, response, relay.model)

    async def loglikelihoods(self, request: Request) -> Response:
        model = request.model
        failures.require_key(self._endpoint)
        takes = await self._takes(model)
        if takes.HasField("loglikelihood") and not takes.loglikelihood:
            raise no_loglikelihood(self._endpoint.name)
        await self._refuse_larger(model)
        response = await self._loglikelihoods.score(request)
        return replace(response, cost_usd=self._cost(model, response, request.prices))

    async def close(self) -> None:
        await self._http.close()

    def _remember(self, found: dict[str, endpoint_pb2.Model]) -> tuple[endpoint_pb2.Model, ...]:
        """Keeps the listing, cut to the models that the endpoints file names."""
        if self._endpoint.models:
            found = {name: found.get(name, openai_wire.model({"id": name})) for name in self._endpoint.models}
        self._listed = {name: capabilities.complete(self._endpoint, model) for name, model in found.items()}
        self._preparations.forget()
        return tuple(self._listed.values())

    async def _beside(self, request: Request) -> dict[str, Any]:
        takes = await self._takes(request.model)
        resolved = capabilities.resolve(request.sampling, takes, request.repeat, request.repeats, request.model)
        names = self._names(takes)
        if resolved.parameters.keys() - names.keys():
            names = {**names, **await self._further_names()}
        beside = dict(self._wire.always)
        for name, value in resolved.parameters.items():
            if name not in names:
                raise failures.not_taken(self._endpoint, name)
            beside[names[name]] = value
        if resolved.stop and self._wire.takes_stop and request.item.stop:
            beside["stop"] = list(request.item.stop[: self._most_stops])
        if request.stream:
            beside |= self._wire.streaming
        return beside | self._wire.further(self._extra(request, ("model", self._wire.prompt, "stream", *beside)))

    def _names(self, takes: endpoint_pb2.Capabilities) -> Mapping[str, str]:
        """The protocol's names of Touchstone's parameters."""
        own = self._official or (takes.reasoning and takes.HasField("sampling") and not takes.sampling)
        limit = "max_completion_tokens" if own else "max_tokens"
        return {"temperature": "temperature", "top_p": "top_p", "seed": "seed", "max_tokens": limit}

    def _extra(self, request: Request, written: Collection[str]) -> dict[str, Any]:
        return extra(request.sampling, written)

    async def _further_names(self) -> Mapping[str, str]:
        """Names of parameters that this server has and the protocol lacks."""
        await self._ensure_listed()
        return OPTIONAL.get(self._owner, {} if self._official else _UNKNOWN)

    async def _takes(self, model: str) -> endpoint_pb2.Capabilities:
        with suppress(ProviderError):  # A server may answer with an empty list.
            await self._ensure_listed()
        known = (self._listed or {}).get(model)
        return known.capabilities if known is not None else capabilities.capabilities(self._endpoint, model)

    def _cost(self, model: str, response: Response, of_job: endpoint_pb2.Prices | None) -> float | None:
        known = of_job or prices.of(self._endpoint, model, (self._listed or {}).get(model))
        return prices.cost_usd(known, response.input_tokens, response.output_tokens, response.cost_usd)

    async def _refuse_larger(self, model: str) -> None:
        if not self._endpoint.max_model_b:
            return
        await self._ensure_listed()
        known = (self._listed or {}).get(model)
        size = known.parameters_b if known is not None else numbers.parameters_b(model)
        capabilities.refuse_larger(self._endpoint.name, model, size, self._endpoint.max_model_b)

    async def _ensure_listed(self) -> None:
        if self._listed is not None:
            return
        async with self._listing:
            if self._listed is None:
                await self.list_models()
