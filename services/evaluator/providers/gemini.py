"""Google's Gemini over its own API. `base_url` ends in the version: v1beta, the default, also knows aliases and
previews; v1 is the stable one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers import gemini_wire
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities, failures
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.evaluator.providers.protocol.sampling import Preparations, extra
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import MalformedError, count, entries, string
from touchstone.v1 import endpoint_pb2

_PAGE = 1000
_MOST_PAGES = 20
_TOO_LONG = re.compile(r"exceeds the maximum number of tokens|token count.*exceeds|input is too long", re.IGNORECASE)
_MOST_STOPS = 5
"""More are refused with 400; the first ones are kept, and reading the answer applies the rest."""


class GeminiProvider:
    """One Gemini endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = Transport.to(
            endpoint,
            "Correct base_url in the endpoints file.",
            headers={"x-goog-api-key": endpoint.api_key} if endpoint.api_key else {},
        )
        self._preparations = Preparations(self._beside)

    async def list_models(self) -> Listing:
        failures.require_key(self._endpoint)
        found: dict[str, endpoint_pb2.Model] = {}
        token = ""
        for _ in range(_MOST_PAGES):
            reply = await self._http.get(f"/models?pageSize={_PAGE}" + (f"&pageToken={quote(token)}" if token else ""))
            if reply.status != 200 or not isinstance(reply.body, dict):
                if self._endpoint.models and reply.status in (404, 405):
                    break
                raise self.failure(reply, "")
            for entry in entries(reply.body, "models"):
                model = _model(entry)
                if model is not None:
                    found[model.model] = model
            token = string(reply.body, "nextPageToken")
            if not token:
                break
        if self._endpoint.models:
            found = {name: found.get(name, endpoint_pb2.Model(model=name)) for name in self._endpoint.models}
        return Listing(tuple(capabilities.complete(self._endpoint, model) for model in found.values()), "Gemini")

    async def generate(self, request: Request) -> Response:
        body, parameters = await self.written(request)
        path = model_path(request.model)
        if request.stream:
            path += "streamGenerateContent?alt=sse"
            reply = await self._http.stream(path, body, gemini_wire.ContentFold(), request.heard)
        else:
            reply = await self._http.post(path + "generateContent", body)
        return self.read(reply, request.model, parameters, request.prices)

    async def written(self, request: Request) -> tuple[dict[str, Any], str]:
        """The body of a request, and the part of it that is recorded. Raises ProviderError."""
        endpoint, model = self._endpoint, request.model
        failures.require_key(self._endpoint)
        capabilities.refuse_larger(endpoint.name, model, capabilities.known_b(endpoint, model), endpoint.max_model_b)
        beside = await self._preparations.of(request)
        return {**gemini_wire.prompt(request.item.messages, model), **beside.fields}, beside.json

    def read(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None = None) -> Response:
        """The answer, at the job's prices. Raises ProviderError."""
        if reply.status != 200:
            return self._refusal(reply, model, parameters)
        return self._response(reply, model, parameters, of_job)

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood(self._endpoint.name)

    async def close(self) -> None:
        await self._http.close()

    async def _beside(self, request: Request) -> dict[str, Any]:
        """The body apart from the prompt. Raises ProviderError for a parameter that Gemini has no field for."""
        endpoint = self._endpoint
        takes = capabilities.capabilities(endpoint, request.model)
        resolved = capabilities.resolve(request.sampling, takes, request.repeat, request.repeats, request.model)
        config: dict[str, Any] = {}
        for name, value in resolved.parameters.items():
            if name not in gemini_wire.OPTIONS:
                raise failures.not_taken(endpoint, name)
            config[gemini_wire.OPTIONS[name]] = value
        if resolved.stop and request.item.stop:
            config["stopSequences"] = list(request.item.stop[:_MOST_STOPS])
        further = gemini_wire.further(extra(request.sampling, (*gemini_wire.WRITTEN, *config)))
        return gemini_wire.parameters(config, further)

    def _response(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None) -> Response:
        endpoint = self._endpoint
        if not isinstance(reply.body, dict):
            raise failures.cut_short(endpoint)
        if reply.body.get("error"):
            raise self.failure(reply, model)
        try:
            response = gemini_wire.response(reply.body)
        except MalformedError as error:
            raise failures.malformed(endpoint, error) from None
        if response is None:
            raise failures.lacking(endpoint, "a candidate")
        return replace(
            response,
            latency_ms=reply.latency_ms,
            ttft_ms=reply.ttft_ms,
            parameters=parameters,
            cost_usd=prices.cost_usd(
                of_job or prices.of(endpoint, model), response.input_tokens, response.output_tokens
            ),
        )

    def _refusal(self, reply: Reply, model: str, parameters: str) -> Response:
        """An answer that refuses only this item; every other failure raises ProviderError."""
        if reply.status == 400 and _TOO_LONG.search(reply.error_text):
            return failures.does_not_fit(reply, parameters)
        raise self.failure(reply, model)

    def failure(self, reply: Reply, model: str) -> ProviderError:
        """What a failed call means for the job, and what a user can do about it."""
        endpoint, said = self._endpoint, reply.error_text
        details = gemini_wire.error_details(reply.body)
        # For an error within a stream, whose own status was 200.
        status = gemini_wire.error_status(reply.body) or reply.status
        reasons = {str(detail.get("reason")) for detail in details}
        wait = gemini_wire.retry_after_s(details)
        wait = reply.retry_after_s if wait is None else wait
        if status in (401, 403) or "API_KEY_INVALID" in reasons or "API key" in said:
            return failures.key_refused(endpoint, reply)
        if status == 429 and gemini_wire.is_used_up(details, said):
            return ProviderError(
                f"{endpoint.name} says that the quota for {model} is used up. Raise it there or choose another model, "
                "then retry.",
                fatal=True,
            )
        if status == 429:
            return failures.fewer_calls(endpoint, wait, reply.error_text)
        if status == 404 and "model" in said.lower():
            return failures.no_model(endpoint, model)
        if status in (404, 405):
            return failures.not_this_api(
                endpoint, "Gemini API", "Correct base_url in the endpoints file; it ends in /v1beta or /v1."
            )
        if status == 400 and "location is not supported" in said:
            return ProviderError(f"{endpoint.name} refuses calls from this location: {said}.", fatal=True)
        if status == 503:
            return failures.overloaded(endpoint, wait)
        return failures.by_status(endpoint, replace(reply, status=status))


def model_path(model: str) -> str:
    """The path of a model's calls, before the name of the method."""
    return f"/models/{quote(model.removeprefix('models/'), safe='')}:"


def _model(entry: dict[str, Any]) -> endpoint_pb2.Model | None:
    """A model of `/models`; None for those that generate no text."""
    methods = entry.get("supportedGenerationMethods")
    if not isinstance(methods, list) or "generateContent" not in methods:
        return None
    name = string(entry, "name").removeprefix("models/")
    if not name:
        return None
    return endpoint_pb2.Model(
        model=name,
        parameters_b=numbers.parameters_b(name),
        context_length=count(entry, "inputTokenLimit", 2**31 - 1),
    )
