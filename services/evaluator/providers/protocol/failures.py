"""The sentences for what goes wrong at any provider: what happened at which endpoint, then what to do.

They never hold the key: words of a provider that may repeat parts of it are left out.
"""

from __future__ import annotations

import re

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import AGAIN, Reply
from services.evaluator.providers.protocol.usage import MalformedError
from services.words import endpoints as words

_PART = 4
"""Characters of a key's beginning and end by which its parts are recognized."""
_MOST_CODE = 60


def require_key(endpoint: Endpoint) -> None:
    """Raises ProviderError, before any call, while the key that the endpoint names is not set."""
    if not endpoint.configured:
        raise ProviderError(endpoint.unusable, fatal=True)


def does_not_fit(reply: Reply, parameters: str) -> Response:
    """The item's outcome when its prompt is longer than the model's context: the call did not fail."""
    return Response(
        "",
        finish_reason="context_length_exceeded",
        latency_ms=reply.latency_ms,
        input_truncated=True,
        parameters=parameters,
    )


def key_refused(endpoint: Endpoint, reply: Reply | None = None) -> ProviderError:
    """With the words and the code of the refusal in `reply`, without any part of the key."""
    variable = endpoint.api_key_env
    if variable:
        what = f"Set {variable} where the evaluator runs and restart it."
    else:
        what = "Name the variable that holds it as api_key_env in the endpoints file."
    said = _without_parts(endpoint.api_key, reply.error_text) if reply else ""
    code = _without_parts(endpoint.api_key, reply.error_code[:_MOST_CODE]) if reply else ""
    told = ", code ".join(filter(None, (said, "" if code in said else code)))
    message = f"{endpoint.name} refused the key{f' ({told})' if told else ''}. {what}"
    return ProviderError(message, fatal=True, of_key=True)


def _without_parts(key: str, words: str) -> str:
    """The words without those that may hold a part of the key: providers repeat its first or last characters, with the
    rest masked."""
    parts = [re.escape(part) for part in (key[:_PART], key[-_PART:]) if len(part) == _PART]
    shown = "|".join([*parts, r"\*{2,}", "…", r"\.{3}", r"\bsk-", r"[A-Za-z0-9_\-]{24,}"])
    return re.sub(rf"[^\s\"'()<>,]*(?:{shown})[^\s\"'()<>,]*", "[key]", words)


def used_up(endpoint: Endpoint) -> ProviderError:
    return ProviderError(
        f"{endpoint.name} says that the quota is used up. Add credit there, then retry.", fatal=True, status=429
    )


def fewer_calls(endpoint: Endpoint, retry_after_s: float | None, words: str = "") -> ProviderError:
    return ProviderError(
        f"{endpoint.name} asks for fewer calls{_after(words)}. Lower its concurrency or set requests_per_minute in the "
        "endpoints file.",
        retryable=True,
        rate_limited=True,
        retry_after_s=retry_after_s,
    )


def overloaded(endpoint: Endpoint, retry_after_s: float | None) -> ProviderError:
    """The provider has too much to do for everyone. Paced like a rate limit: it does not count as a try of the item."""
    return ProviderError(
        f"{endpoint.name} is overloaded. Lower concurrency or retry later.",
        retryable=True,
        rate_limited=True,
        of_endpoint=True,
        retry_after_s=retry_after_s,
    )


def no_model(endpoint: Endpoint, model: str) -> ProviderError:
    return ProviderError(
        f"{endpoint.name} does not have model {model}. Choose one that it lists.", fatal=True, status=404
    )


def not_this_api(endpoint: Endpoint, what: str, hint: str = "Correct base_url in the endpoints file.") -> ProviderError:
    return ProviderError(f"{endpoint.name} has no {what} at {endpoint.address}. {hint}", fatal=True)


def not_taken(endpoint: Endpoint, parameter: str) -> ProviderError:
    """A parameter of the job that the protocol has no field for. Every recorded parameter must have been sent."""
    return ProviderError(words.not_taken(endpoint.name, parameter), fatal=True, status=400)


def cut_short(endpoint: Endpoint) -> ProviderError:
    return ProviderError(f"{endpoint.name} cut an answer short: it is not whole JSON. {AGAIN}", retryable=True)


def lacking(endpoint: Endpoint, what: str) -> ProviderError:
    return ProviderError(f"{endpoint.name} sent an answer without {what}. {AGAIN}", retryable=True)


def malformed(endpoint: Endpoint, error: MalformedError) -> ProviderError:
    return ProviderError(f"{endpoint.name} sent an answer {error}. {AGAIN}", retryable=True)


def failed_midway(endpoint: Endpoint, words: str) -> ProviderError:
    return ProviderError(f"{endpoint.name} failed while answering{_after(words)}. {AGAIN}", retryable=True)


def by_status(endpoint: Endpoint, reply: Reply) -> ProviderError:
    """What a status without details means: a server error is worth another try, a refusal is not."""
    if reply.status in (408, 409, 425) or reply.status >= 500:
        return ProviderError(
            f"{endpoint.name} failed with status {reply.status}{_after(reply.error_text)}. {AGAIN}",
            retryable=True,
            unreachable=reply.status in (502, 503, 504),
            retry_after_s=reply.retry_after_s,
            free=reply.status == 503,
        )
    return ProviderError(
        f"{endpoint.name} refused a call with status {reply.status}{_after(reply.error_text)}. Correct the cause, "
        "then retry.",
        status=reply.status if reply.status not in (401, 403, 407) else 0,
    )


def _after(words: str) -> str:
    return f": {words}" if words else ""
