"""An application instead of a model: any URL that answers a JSON request with JSON, as `[endpoint.http]` describes it.

Nothing is assumed about the application behind the URL: only sampling parameters that the request names are sent, and
every answer that the configured path finds is the application's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from services import further_fields, numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.endpoints.jsonpath import JsonPath, NotFoundThereError
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.openai.wire import chat_messages
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities, common_form, failures
from services.evaluator.providers.protocol.provider import Listing, ProviderError, Request, no_loglikelihood
from services.evaluator.providers.protocol.sampling import extra, recorded
from services.evaluator.providers.protocol.transport import Reply, Transport
from services.evaluator.providers.protocol.usage import MalformedError, Told
from services.words.sampling import PARAMETERS
from touchstone.v1 import endpoint_pb2
from touchstone.v1.content_pb2 import ToolCall

_PROMPT = ("prompt", "messages", "system", "model")


class HttpProvider:
    """One application."""

    def __init__(self, endpoint: Endpoint) -> None:
        if endpoint.http is None:
            raise ValueError(f"endpoint {endpoint.name} of kind http has no [endpoint.http]")
        self._endpoint = endpoint
        self._options: HttpOptions = endpoint.http
        headers = {name: value.replace("{key}", endpoint.api_key) for name, value in self._options.headers.items()}
        if endpoint.api_key and not self._options.needs_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self._http = Transport.to(
            endpoint, "Start the application or correct base_url in the endpoints file.", headers=headers
        )

    async def list_models(self) -> Listing:
        """The configured names, else the endpoint's own. Makes no call: an application has no listing."""
        failures.require_key(self._endpoint)
        names = self._endpoint.models or (self._endpoint.name,)
        models = (endpoint_pb2.Model(model=name, parameters_b=numbers.parameters_b(name)) for name in names)
        return Listing(tuple(capabilities.complete(self._endpoint, model) for model in models))

    async def generate(self, request: Request) -> Response:
        endpoint, options = self._endpoint, self._options
        failures.require_key(self._endpoint)
        if request.model not in (endpoint.models or (endpoint.name,)):
            raise failures.no_model(endpoint, request.model)
        size = capabilities.known_b(endpoint, request.model)
        capabilities.refuse_larger(endpoint.name, request.model, size, endpoint.max_model_b)
        values = self._sampling(request)
        body = options.filled(values | self._question(request.item, request.model))
        beside = options.filled(values | {name: f"{{{name}}}" for name in _PROMPT})
        check(endpoint, request.item.messages, further_fields.fields(request.sampling))
        further = extra(request.sampling, body if isinstance(body, dict) else ())
        if further:
            if not isinstance(body, dict):
                raise failures.not_taken(endpoint, ", ".join(further))
            body, beside = body | further, beside | further
        if options.method == "GET":
            query = urlencode(
                {key: value if isinstance(value, str) else json.dumps(value) for key, value in body.items()}
            )
            mark = "&" if "?" in options.path else "?"
            reply = await self._http.get(f"{options.path}{mark}{query}", timeout_s=endpoint.timeout_s)
        else:
            reply = await self._http.post(options.path, body)
        return replace(self._response(reply, request), parameters=recorded(beside))

    async def loglikelihoods(self, request: Request) -> Response:
        raise no_loglikelihood(self._endpoint.name)

    async def close(self) -> None:
        await self._http.close()

    def _sampling(self, request: Request) -> dict[str, Any]:
        """Values of the placeholders other than the question's. Raises ProviderError for a parameter without a
        placeholder."""
        endpoint, room = self._endpoint, self._options.placeholders
        takes = capabilities.capabilities(endpoint, request.model)
        resolved = capabilities.resolve(request.sampling, takes, request.repeat, request.repeats, request.model)
        for name in PARAMETERS:
            if request.sampling.HasField(name) and name not in room:
                raise failures.not_taken(endpoint, name)
        if request.item.custom_id and request.item.stop and "stop" not in room:
            # For a suite it only saves tokens; a row may require it.
            raise failures.not_taken(endpoint, "stop")
        values = {name: value for name, value in resolved.parameters.items() if name in room}
        if resolved.stop and request.item.stop and "stop" in room:
            values["stop"] = list(request.item.stop)
        return values

    def _question(self, item: Item, model: str) -> dict[str, Any]:
        """Values of the placeholders of the question. The system's message is in the prompt if it has no other
        place."""
        system = [message.content for message in item.messages if message.role == "system"]
        others = [message.content for message in item.messages if message.role != "system"]
        apart = "system" in self._options.placeholders
        return {
            "prompt": "\n\n".join(others if apart else [message.content for message in item.messages]),
            "system": "\n\n".join(system),
            "messages": chat_messages(item.messages),
            "model": model,
        }

    def _response(self, reply: Reply, request: Request) -> Response:
        endpoint, model, options = self._endpoint, request.model, self._options
        if reply.status >= 300:
            raise self._failure(reply)
        if reply.body is None and options.answer.steps:
            raise failures.cut_short(endpoint)
        body = reply.text if reply.body is None else reply.body
        wrong = options.error.first(body) if options.error is not None else None
        if wrong:
            words = wrong if isinstance(wrong, str) else json.dumps(wrong, ensure_ascii=False)
            # The transport finds errors only in their usual place.
            words = words.replace(endpoint.api_key, "[key]") if endpoint.api_key else words
            raise failures.failed_midway(endpoint, " ".join(words.split())[:300].rstrip("."))
        told = Told()
        read, written = (_tokens(told, path, body) for path in (options.input_tokens, options.output_tokens))
        return Response(
            self._answer(body),
            tool_calls=self._calls(body),
            finish_reason=_text(options.finish_reason, body),
            input_tokens=read,
            output_tokens=written,
            latency_ms=reply.latency_ms,
            served_model=_text(options.model, body),
            cost_usd=prices.cost_usd(request.prices or prices.of(endpoint, model), read, written),
            doubtful=told.doubtful,
        )

    def _answer(self, body: Any) -> str:
        """The text that the answer's path leads to. Raises a ProviderError that is not retried."""
        path = self._options.answer
        try:
            values = path.find(body)
        except NotFoundThereError as error:
            raise ProviderError(
                f"{self._endpoint.name} sent an answer in which {error}. Correct http.answer in the endpoints file."
            ) from error
        if any(isinstance(value, dict | list) for value in values):
            raise ProviderError(
                f"{self._endpoint.name} has no text at {path.text}. Point http.answer in the endpoints file at a text."
            )
        return "".join(_written(value) for value in values)

    def _calls(self, body: Any) -> tuple[ToolCall, ...]:
        """Raises ProviderError, which no retry helps."""
        found = self._options.tool_calls.first(body) if self._options.tool_calls is not None else None
        try:
            return common_form.tool_calls({"tool_calls": found}) if found is not None else ()
        except MalformedError:
            raise ProviderError(
                f"{self._endpoint.name} sent tool calls in another form than OpenAI's. Correct http.tool_calls in the "
                "endpoints file."
            ) from None

    def _failure(self, reply: Reply) -> ProviderError:
        endpoint = self._endpoint
        if reply.status in (401, 403):
            return failures.key_refused(endpoint, reply)
        if reply.status == 402:
            return failures.used_up(endpoint)
        if reply.status == 429:
            return failures.fewer_calls(endpoint, reply.retry_after_s, reply.error_text)
        if reply.status in (404, 405):
            return failures.not_this_api(
                endpoint, "application", "Correct base_url and http.path in the endpoints file."
            )
        return failures.by_status(endpoint, reply)


def check(endpoint: Endpoint, messages: Sequence[Message], fields: dict[str, Any]) -> None:
    """Raises ProviderError for what the application cannot be sent, or asked for."""
    options = endpoint.http
    if options is None:
        return
    if any(message.more is not None for message in messages) and "messages" not in options.placeholders:
        raise ProviderError(
            f"{endpoint.name} is sent only the text of messages. For images and tool calls, write "
            '"{messages}" into http.request in the endpoints file.',
            fatal=True,
            status=400,
        )
    asked = common_form.take(dict(fields))
    if asked.functions and options.tool_calls is None:
        raise ProviderError(
            f"{endpoint.name} does not say where its tool calls are. Set http.tool_calls in the endpoints file, or "
            "leave tools out.",
            fatal=True,
            status=400,
        )
    if asked.top >= 0:
        raise common_form.refusal(endpoint.name, "log-probabilities")


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _text(path: JsonPath | None, body: Any) -> str:
    value = path.first(body) if path is not None else None
    return value if isinstance(value, str) else ""


def _tokens(told: Told, path: JsonPath | None, body: Any) -> int | None:
    value = path.first(body) if path is not None else None
    return None if path is None else told.checked(path.text, value, numbers.whole(value, numbers.MOST_TOKENS))
