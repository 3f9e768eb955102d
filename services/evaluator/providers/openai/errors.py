"""Refused calls in OpenAI's protocol: which of them are an item's own outcome, and the sentences for the others."""

from __future__ import annotations

import re

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.protocol import failures
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import Reply

_CONTEXT = re.compile(
    r"(maximum|available|model'?s?) context|context[ _](length|window|size)|exceed_context|prompt is too long|"
    r"(input|prompt|messages?) (is|are|was) too long|reduce the length|maximum prompt length|maximum model length",
    re.IGNORECASE,
)
# "Flagged": by OpenRouter's moderation (403) and of prompts by OpenAI's reasoning models (400).
_FILTERED = re.compile(
    r"content_filter|content_policy|usage guidelines|safety_check|(input|prompt) was flagged", re.IGNORECASE
)
_NO_CREDIT = re.compile(r"insufficient_quota|billing|exceeded your current quota|credit|spending limit", re.IGNORECASE)
_KEY = re.compile(r"api[ _-]?key", re.IGNORECASE)
_NO_ROOM = re.compile(r"max_(completion_)?tokens\W{1,3}( or \W?max_\w+\W)? ?is too large", re.IGNORECASE)
_PARAMETER = re.compile(r"unsupported_(value|parameter)|not support(ed)? (parameter|'?temperature)", re.IGNORECASE)


def refusal(endpoint: Endpoint, reply: Reply, model: str, parameters: str, path: str) -> Response:
    """An answer that refuses only this item; every other failure raises ProviderError."""
    latency_ms = reply.latency_ms
    words = _words(reply)
    if reply.status in (400, 403, 413, 422) and _FILTERED.search(words):
        return Response(
            "",
            finish_reason="content_filter",
            latency_ms=latency_ms,
            refused=True,
            parameters=parameters,
            note=reply.error_text or reply.error_code,
        )
    if reply.status in (400, 413, 422) and _CONTEXT.search(words) and not _NO_ROOM.search(words):
        return failures.does_not_fit(reply, parameters)
    raise failure(endpoint, reply, model, path)


def failure(endpoint: Endpoint, reply: Reply, model: str, path: str) -> ProviderError:
    """What a failed call means for the job, and what a user can do about it."""
    status, said = reply.status, reply.error_text
    words = _words(reply)
    if status == 402 or (status in (403, 429) and _NO_CREDIT.search(words)):
        return failures.used_up(endpoint)
    if is_key_refused(reply):
        return failures.key_refused(endpoint, reply)
    if status == 429:
        return failures.fewer_calls(endpoint, reply.retry_after_s, reply.error_text)
    if is_model_missing(reply):
        return failures.no_model(endpoint, model)
    if status in (404, 405):
        hint = "Correct base_url in the endpoints file; it usually ends in /v1."
        return failures.not_this_api(endpoint, path.strip("/").replace("/", " "), hint)
    if status in (400, 422) and _NO_ROOM.search(words):
        return ProviderError(
            f"The prompt and max_tokens together exceed the context of {model} at {endpoint.name}: {said}. Lower "
            "max_tokens.",
            status=400,
        )
    if status in (400, 422) and _PARAMETER.search(words):
        return ProviderError(
            f"{endpoint.name} refuses a parameter for {model}: {said}. Change the job's parameters, or declare in "
            f'the endpoints file what the model takes: [endpoint.model."{model}"].',
            fatal=True,
            status=400,
        )
    return failures.by_status(endpoint, reply)


def is_key_refused(reply: Reply) -> bool:
    """xAI refuses a wrong key with 400."""
    return reply.status in (401, 403) or (reply.status == 400 and bool(_KEY.search(_words(reply))))


def is_model_missing(reply: Reply) -> bool:
    """A 404 of a server without this path says nothing about models."""
    words = _words(reply)
    named = "model_not_found" in words or (reply.status == 404 and "model" in words.lower())
    return reply.status >= 400 and named and reply.body is not None


def _words(reply: Reply) -> str:
    return f"{reply.error_code} {reply.error_text}"
