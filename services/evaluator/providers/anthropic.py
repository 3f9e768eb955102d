"""Anthropic's Claude over its messages API."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers import anthropic_wire
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities, failures
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.evaluator.providers.protocol.sampling import Beside, Preparations, extra
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import MalformedError, entries, string
from touchstone.v1 import endpoint_pb2

_PAGE = 1000
_MOST_PAGES = 20
_OVERLOADED = 529
_TOO_LONG = re.compile(r"prompt is too long|exceed context limit|exceeds? the (maximum|context)", re.IGNORECASE)
_NO_CREDIT = re.compile(r"credit balance|usage limits|spend limit|billing", re.IGNORECASE)
_NO_MODEL = re.compile(r"^model\b", re.IGNORECASE)


class AnthropicProvider:
    """One endpoint that speaks the messages API."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        headers = {"anthropic-version": anthropic_wire.VERSION}
        if endpoint.api_key:
            headers["x-api-key"] = endpoint.api_key
        self._http = Transport.to(endpoint, "Correct base_url in the endpoints file.", headers=headers)
        self._preparations = Preparations(self._beside)

    async def list_models(self) -> Listing:
        failures.require_key(self._endpoint)
        found: dict[str, endpoint_pb2.Model] = {}
        after = ""
        for _ in range(_MOST_PAGES):
            reply = await self._http.get(f"/models?limit={_PAGE}" + (f"&after_id={quote(after)}" if after else ""))
            if reply.status != 200 or not isinstance(reply.body, dict):
                if self._endpoint.models and reply.status in (404, 405):
                    break
                raise self._failure(reply, "")
            for entry in entries(reply.body, "data"):
                model = anthropic_wire.model(entry)
                if model is not None:
                    found[model.model] = model
            after = string(reply.body, "last_id")
            if not (reply.body.get("has_more") and after):
                break
        if self._endpoint.models:
            found = {name: found.get(name, endpoint_pb2.Model(model=name)) for name in self._endpoint.models}
        return Listing(tuple(capabilities.complete(self._endpoint, model) for model in found.values()), "Anthropic")

    async def generate(self, request: Request) -> Response:
        endpoint, model = self._endpoint, request.model
        failures.require_key(self._endpoint)
        capabilities.refuse_larger(endpoint.name, model, capabilities.known_b(endpoint, model), endpoint.max_model_b)
        beside = await self._preparations.of(request)
        body = {"model": model, **anthropic_wire.prompt(request.item.messages), **beside.fields}
        if request.stream:
            reply = await self._http.stream("/messages", body, anthropic_wire.MessageFold(), request.heard)
        else:
            reply = await self._http.post("/messages", body)
        if reply.status != 200:
            return self._refusal(reply, model, beside)
        return self._response(reply, request, beside)

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood(self._endpoint.name)

    async def close(self) -> None:
        await self._http.close()

    async def _beside(self, request: Request) -> dict[str, Any]:
        """The body apart from model and prompt. Raises ProviderError for a parameter that the API has no field for."""
        takes = capabilities.capabilities(self._endpoint, request.model)
        resolved = capabilities.resolve(request.sampling, takes, request.repeat, request.repeats, request.model)
        beside: dict[str, Any] = {}
        for name, value in resolved.parameters.items():
            if name not in anthropic_wire.OPTIONS:
                raise failures.not_taken(self._endpoint, name)
            beside[anthropic_wire.OPTIONS[name]] = value
        stop = anthropic_wire.stop_sequences(request.item.stop) if resolved.stop else []
        if stop:
            beside["stop_sequences"] = stop
        if request.stream:
            beside["stream"] = True
        beside |= anthropic_wire.further(extra(request.sampling, (*anthropic_wire.WRITTEN, *beside)))
        return {"max_tokens": anthropic_wire.DEFAULT_MAX_TOKENS} | beside

    def _response(self, reply: Reply, request: Request, beside: Beside) -> Response:
        endpoint, model, body = self._endpoint, request.model, reply.body
        if not isinstance(body, dict):
            raise failures.cut_short(endpoint)
        if body.get("error"):
            raise self._failure(reply, model)
        try:
            response = anthropic_wire.response(body)
        except MalformedError as error:
            raise failures.malformed(endpoint, error) from None
        if response is None:
            raise failures.lacking(endpoint, "content")
        return replace(
            response,
            latency_ms=reply.latency_ms,
            ttft_ms=reply.ttft_ms,
            parameters=beside.json,
            cost_usd=prices.cost_usd(
                request.prices or prices.of(endpoint, model), response.input_tokens, response.output_tokens
            ),
        )

    def _refusal(self, reply: Reply, model: str, beside: Beside) -> Response:
        """An answer that refuses only this item; every other failure raises ProviderError."""
        if reply.status == 413 or (reply.status == 400 and _TOO_LONG.search(reply.error_text)):
            return failures.does_not_fit(reply, beside.json)
        raise self._failure(reply, model)

    def _failure(self, reply: Reply, model: str) -> ProviderError:
        endpoint, said = self._endpoint, reply.error_text
        # An error within a stream has a type but not a separate status.
        status = anthropic_wire.STATUSES.get(reply.error_code, reply.status) if reply.status == 200 else reply.status
        if status in (401, 403):
            return failures.key_refused(endpoint, reply)
        if status == 402 or (status in (400, 429) and _NO_CREDIT.search(said)):
            return failures.used_up(endpoint)
        if status == 429:
            return failures.fewer_calls(endpoint, reply.retry_after_s, reply.error_text)
        if status == _OVERLOADED:
            return failures.overloaded(endpoint, reply.retry_after_s)
        if status == 404 and _NO_MODEL.search(said):
            return failures.no_model(endpoint, model)
        if status in (404, 405):
            return failures.not_this_api(
                endpoint, "messages API", "Correct base_url in the endpoints file; it usually ends in /v1."
            )
        return failures.by_status(endpoint, replace(reply, status=status))
