"""Ollama's own API (v0.33): `/api/chat`, `/api/tags`, `/api/version`, `/api/ps`, `/api/show`.

A prompt that does not fit is cut silently by default, to about half of the window. Every request therefore says
`truncate: false` and `shift: false` (since 0.12.6): the server then refuses it, which becomes the item's outcome "input
truncated". Older servers ignore both and fill the window instead: there an answer counts as input truncated when
`prompt_eval_count` reaches the window less one token, where the window is the job's `context_length`, or the value in
`/api/ps` for the loaded model.

`num_ctx` is never raised on the job's behalf. Each change loads the model again, a larger one may push it off the GPU,
and the answers of one job would come from different settings. The outcomes of a job show refused prompts; its user sets
context_length and runs just those items again.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers import ollama_wire
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities, failures
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.evaluator.providers.protocol.sampling import Preparations, extra
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import MalformedError, count, entries, string
from touchstone.v1 import endpoint_pb2

_TOO_LONG = re.compile(
    r"exceed_context_size|exceeds the (available )?context|longer than the context|context length", re.IGNORECASE
)


class OllamaProvider:
    """One Ollama server."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = Transport.to(endpoint, "Start it with `ollama serve`.")
        self._listed: dict[str, endpoint_pb2.Model] | None = None
        self._filled: dict[str, endpoint_pb2.Model] = {}
        self._listing = asyncio.Lock()
        self._windows: dict[str, int] = {}
        self._preparations = Preparations(self._beside)

    async def list_models(self) -> Listing:
        tags, version, loaded = await asyncio.gather(
            self._http.get("/api/tags"), self._http.get("/api/version"), self._loaded()
        )
        if tags.status != 200 or not isinstance(tags.body, dict):
            raise self._failure(tags, "")
        listed = map(ollama_wire.model, entries(tags.body, "models"))
        found = {model.model: model for model in listed if model.model}
        if self._endpoint.models:
            found = {name: found.get(name, endpoint_pb2.Model(model=name)) for name in self._endpoint.models}
        await asyncio.gather(*(self._fill(model) for model in found.values()))
        self._filled = found
        shown = tuple(self._shown(model, loaded) for model in found.values())
        self._listed = {model.model: model for model in shown}
        self._preparations.forget()
        number = string(version.body, "version") if version.status == 200 else ""
        return Listing(shown, f"Ollama {number}" if number else "Ollama")

    async def generate(self, request: Request) -> Response:
        model = request.model
        if not self._endpoint.configured:
            raise ProviderError(self._endpoint.unusable, fatal=True)
        known = await self._known(model)
        size = (known.parameters_b if known is not None else 0.0) or capabilities.known_b(self._endpoint, model)
        capabilities.refuse_larger(self._endpoint.name, model, size, self._endpoint.max_model_b)
        beside = await self._preparations.of(request)
        body = {"model": model, "messages": ollama_wire.messages(request.item.messages), **beside.fields}
        if request.stream:
            reply = await self._http.stream("/api/chat", body, ollama_wire.ChatFold(), request.heard)
        else:
            reply = await self._http.post("/api/chat", body)
        if reply.status == 400 and _TOO_LONG.search(reply.text):
            response = Response("", finish_reason="context_length_exceeded", input_truncated=True)
        elif reply.status != 200:
            raise self._failure(reply, model)
        else:
            response = await self._response(reply, model, int(beside.fields.get("options", {}).get("num_ctx") or 0))
        return replace(
            response,
            latency_ms=reply.latency_ms,
            ttft_ms=reply.ttft_ms,
            parameters=beside.json,
            cost_usd=prices.cost_usd(
                request.prices or prices.of(self._endpoint, model), response.input_tokens, response.output_tokens
            ),
        )

    async def loglikelihoods(self, request: Request) -> Response:
        # It gives logprobs of generated tokens only; it cannot echo a given text.
        raise no_loglikelihood(self._endpoint.name)

    async def close(self) -> None:
        await self._http.close()

    async def _beside(self, request: Request) -> dict[str, Any]:
        known = await self._known(request.model)
        beside: dict[str, Any] = {"stream": request.stream, "truncate": False, "shift": False}
        listed = known.capabilities if known is not None else None
        takes = capabilities.capabilities(self._endpoint, request.model, listed)
        resolved = capabilities.resolve(request.sampling, takes, request.repeat, request.repeats, request.model)
        options: dict[str, Any] = {ollama_wire.OPTIONS[name]: value for name, value in resolved.parameters.items()}
        if resolved.stop and request.item.stop:
            options["stop"] = list(request.item.stop)
        further = ollama_wire.further(extra(request.sampling, ("model", "messages", *beside)))
        further_options = further.pop("options", {})
        # What was recorded must be what was sent: the job's own parameters win.
        options = (further_options if isinstance(further_options, dict) else {}) | options
        if self._endpoint.keep_alive is not None:
            further.setdefault("keep_alive", self._endpoint.keep_alive)
        return beside | further | ({"options": options} if options else {})

    async def _response(self, reply: Reply, model: str, window: int) -> Response:
        endpoint = self._endpoint
        if not isinstance(reply.body, dict):
            raise failures.cut_short(endpoint)
        if reply.body.get("error"):
            raise failures.failed_midway(endpoint, reply.error_text)
        try:
            response = ollama_wire.response(reply.body)
        except MalformedError as error:
            raise failures.malformed(endpoint, error) from None
        if response is None:
            raise failures.lacking(endpoint, "a message")
        window = window or await self._loaded_window(model)
        return replace(response, input_truncated=0 < window - 1 <= (response.input_tokens or 0))

    def _shown(self, listed: endpoint_pb2.Model, loaded: list[dict[str, Any]]) -> endpoint_pb2.Model:
        model = endpoint_pb2.Model()
        model.CopyFrom(listed)
        for entry in loaded:
            if ollama_wire.is_model(entry, model.model):
                ollama_wire.loaded(model, entry)
        return capabilities.complete(self._endpoint, model)

    async def _loaded(self) -> list[dict[str, Any]]:
        """Entries of the models in memory; empty when the server does not say."""
        try:
            reply = await self._http.get("/api/ps")
        except ProviderError:
            return []
        return entries(reply.body, "models")

    async def _loaded_window(self, model: str) -> int:
        """Tokens that the loaded model's context holds, asked once per model; 0 when the server does not say."""
        if model not in self._windows:
            self._windows[model] = 0  # One request at a time, and no other one after a failure.
            for entry in await self._loaded():
                if ollama_wire.is_model(entry, model):
                    self._windows[model] = count(entry, "context_length", 2**31 - 1)
        return self._windows[model]

    async def _known(self, model: str) -> endpoint_pb2.Model | None:
        """The model as listed, so that a call does not depend on an earlier listing."""
        async with self._listing:
            if self._listed is None:
                await self.list_models()
        listed = self._listed or {}
        return listed.get(model) or listed.get(f"{model}:latest")

    async def _fill(self, model: endpoint_pb2.Model) -> None:
        """What `/api/tags` lacks: context length, size and thinking; asked once per digest of the weights."""
        known = self._filled.get(model.model)
        if known is not None and known.digest == model.digest and known.context_length:
            model.CopyFrom(known)
            return
        if model.context_length and model.parameters_b and model.capabilities.HasField("reasoning"):
            return
        try:
            reply = await self._http.post("/api/show", {"model": model.model}, timeout_s=5)
        except ProviderError:
            return
        if reply.status != 200 or not isinstance(reply.body, dict):
            return
        ollama_wire.thinks(model, reply.body)
        info = reply.body.get("model_info")
        if isinstance(info, dict):
            lengths = (count(info, key, 2**31 - 1) for key in info if key.endswith(".context_length"))
            model.context_length = model.context_length or max(lengths, default=0)
            counted = count(info, "general.parameter_count")
            model.parameters_b = model.parameters_b or capabilities.billions(counted)

    def _failure(self, reply: Reply, model: str) -> ProviderError:
        endpoint, status, said = self._endpoint, reply.status, reply.error_text
        lower = said.lower()
        if status in (401, 403):
            return failures.key_refused(endpoint, reply)
        if status == 404 and "model" in lower and model:
            return ProviderError(
                f"{endpoint.name} does not have model {model}. Run `ollama pull {model}` where it runs.",
                fatal=True,
                status=404,
            )
        if status in (404, 405):
            return ProviderError(
                f"{endpoint.name} at {endpoint.address} is not an Ollama server. Correct base_url in the endpoints "
                "file.",
                fatal=True,
            )
        if "system memory" in lower or "does not support chat" in lower:
            return ProviderError(f"{endpoint.name} cannot run {model}: {said}. Choose another model.", fatal=True)
        if status in (429, 503):
            return ProviderError(
                f"{endpoint.name} has too many calls waiting. Lower its concurrency in the endpoints file.",
                retryable=True,
                rate_limited=True,
                of_endpoint=True,
                retry_after_s=reply.retry_after_s,
            )
        return failures.by_status(endpoint, reply)
