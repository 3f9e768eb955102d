"""Why a call has no answer, in the shape and with the statuses of OpenAI's API. Pure.

Keys and addresses of endpoints stay here: a message names an endpoint by its name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.openai import errors
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.providers.protocol.usage import inner, string

_TYPES = {429: "rate_limit_error"}
_CODES = {404: "model_not_found", 429: "rate_limit_exceeded"}
_NO_QUOTA = "insufficient_quota"
_BUSY_S = 10.0
STORED = ("previous_response_id", "conversation", "background", "prompt")
"""Fields of requests to providers that keep responses."""
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "max_completion_tokens": ("max_output_tokens", "max_tokens"),
    "max_tokens": ("max_output_tokens", "max_completion_tokens"),
    "reasoning_effort": ("reasoning.effort",),
    "response_format": ("text.format",),
    "verbosity": ("text.verbosity",),
    "messages": ("input",),
}
"""Names that a message may have for a field, and those by which its sender may know it."""
_MEANT: Mapping[str, tuple[str, ...]] = {
    "log-probabilities": ("logprobs", "top_logprobs", "include"),
    "image": ("messages", "input"),
}
"""Words of messages that name no field, and the fields that they are about."""
_NOT_NAMED = frozenset(("model", "messages", "input", "stream"))


class RefusedCallError(Exception):
    """`status` is that of HTTP. `param` is the field at fault, or empty. `retry_after_s` is None where another try does
    not help, or where nobody knows when. `cause` is the provider's failure, if that is why."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str = "",
        *,
        kind: str = "",
        code: str | None = None,
        retry_after_s: float | None = None,
        cause: ProviderError | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.kind = kind or _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        self.code = code or _CODES.get(status)
        self.retry_after_s = retry_after_s
        self.cause = cause

    @property
    def free(self) -> bool:
        """Whether the call certainly cost nothing."""
        return self.cause.free if self.cause is not None else self.status < 500

    @property
    def body(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "param": self.param or None, "code": self.code}
        return {"error": error}

    @property
    def headers(self) -> dict[str, str]:
        found = {"content-type": "application/json"}
        if self.retry_after_s is not None:
            found["retry-after"] = str(math.ceil(self.retry_after_s))
        if self.code == _NO_QUOTA:
            found["x-should-retry"] = "false"
        return found


def wrong(message: str, param: str = "") -> RefusedCallError:
    """Of a request that cannot be made."""
    return RefusedCallError(400, message, param)


def busy(message: str) -> RefusedCallError:
    """Of an endpoint that has no room now."""
    return RefusedCallError(503, message, retry_after_s=_BUSY_S)


def paused(endpoint: Endpoint, left_s: float) -> RefusedCallError:
    """Of a model whose provider asked for a pause, of which `left_s` seconds are left."""
    message = f"{endpoint.name} asked for fewer calls. Try again in {math.ceil(left_s)} s."
    return RefusedCallError(429, message, retry_after_s=left_s)


def of_provider(endpoint: Endpoint, error: ProviderError, asked: Mapping[str, Any]) -> RefusedCallError:
    """Of a call that failed, or that could not be written. `asked` is the request, whose fields the message may
    name."""
    status = error.status or (429 if error.rate_limited else 503 if error.unreachable else 502)
    message = without_address(endpoint, error.message)
    code = _NO_QUOTA if status == 429 and not error.rate_limited else None
    param = named(message, asked) if status == 400 else ""
    return RefusedCallError(status, message, param, code=code, retry_after_s=error.retry_after_s, cause=error)


def of_reply(endpoint: Endpoint, reply: Reply, model: str, path: str, asked: Mapping[str, Any]) -> RefusedCallError:
    """Of an answer of OpenAI's protocol that is not 200. What the provider says of the request is passed on; what it
    says of the endpoint's key is not the sender's fault."""
    failure = errors.failure(endpoint, reply, model, path)
    passed_on = 400 <= reply.status < 500 and not failure.rate_limited
    if not passed_on or reply.status in (401, 402, 403) or errors.is_key_refused(reply) or failure.status == 429:
        return of_provider(endpoint, failure, asked)
    if reply.status in (404, 405) and not errors.is_model_missing(reply) and not of_stored(reply, asked):
        return of_provider(endpoint, failure, asked)
    told = inner(reply.body, "error")
    message = without_address(endpoint, reply.error_text or failure.message)
    return RefusedCallError(
        reply.status,
        message,
        string(told, "param") or named(message, asked),
        kind=string(told, "type"),
        code=reply.error_code or None,
    )


def of_stored(reply: Reply, asked: Mapping[str, Any]) -> bool:
    """Whether a 404 says that the provider does not keep what the request names."""
    return reply.status == 404 and bool(reply.error_code) and any(asked.get(name) for name in STORED)


def without_address(endpoint: Endpoint, message: str) -> str:
    """The message with the endpoint's name in the place of its address, and without its key."""
    for secret, shown in ((endpoint.api_key, "[key]"), (endpoint.base_url, endpoint.name)):
        message = message.replace(secret, shown) if secret else message
    if endpoint.address:
        message = message.replace(f" at {endpoint.address}", "").replace(endpoint.address, endpoint.name)
    return message


def named(message: str, asked: Mapping[str, Any]) -> str:
    """The first field of the request that the message names; empty for none."""
    return next(
        (name for name in asked if name not in _NOT_NAMED and re.search(rf"\b{re.escape(name)}\b", message)), ""
    )


def in_callers_words(refusal: RefusedCallError, asked: Mapping[str, Any]) -> RefusedCallError:
    """The refusal with the names that its sender used, where a field has another name on its way to the provider."""
    param, message = refusal.param, refusal.message
    for theirs, names in _OTHER_NAMES.items():
        used = next((name for name in names if name.partition(".")[0] in asked), None)
        if theirs in asked or used is None:
            continue
        # "messages" is also a word of sentences.
        pattern = rf'(?<="){theirs}(?=")' if theirs == "messages" else rf"(?<![.\w]){theirs}\b"
        if param == theirs or (not param and re.search(pattern, message)):
            param = used
        message = re.sub(pattern, used, message)
    for words, names in _MEANT.items():
        if not param and words in message:
            param = next((name for name in names if name in asked), "")
    refusal.param, refusal.message = param, message
    return refusal
