"""Every way in which a provider fails, at every kind of endpoint: what the worker is told, and what the user reads."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.evaluator import make_provider
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.items.task import Item, Message, Response
from services.evaluator.providers.protocol.provider import ProviderError, Request
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.application_server import ApplicationServer
from tests.servers.gemini_server import GeminiServer, quota_failure, retry_info
from tests.servers.grok_server import GrokServer
from tests.servers.ollama_server import OllamaServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault, StubServer
from tests.servers.vllm_server import VLLMServer
from touchstone.v1 import job_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = Item(0, (Message("user", "one two three"),), "positive", "h", "p")
KEY = "sk-0123456789abcdef"
NAME = "there"
OPTIONS = HttpOptions.read({"path": "/ask", "request": {"question": "{prompt}"}, "answer": "$.reply.text"})


@dataclass(frozen=True)
class Kind:
    """One kind of endpoint, how its server says what all servers say in their own way, and what it cannot say."""

    server: Callable[[Behaviour], StubServer]
    label: str
    lacks: str
    model: str = "m"
    fields: dict[str, Any] = field(default_factory=dict)
    used_up: Fault | None = None
    blocked: Callable[[Any], Fault | None] | None = None
    too_long: Fault | None = None
    streams: bool = True


def _blocked_gemini(server: GeminiServer) -> None:
    server.blocked = "SAFETY"


def _blocked_anthropic(server: AnthropicServer) -> None:
    server.stop_reason = "refusal"


_OPENAI_TOO_LONG = Fault(
    "400",
    message="This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
    code="context_length_exceeded",
)
_FILTERED = Fault("400", message="The prompt was filtered.", code="content_filter")
_GROK_USED_UP = Fault("429", message="Your team has used all available credits.", code="resource-exhausted")
_GROK_TOO_LONG = Fault("400", message="This model's maximum prompt length is 131072 but the request has 200000.")
KINDS = {
    "openai": Kind(
        OpenAIServer,
        "OpenAI",
        "a choice",
        used_up=Fault("429", message="You exceeded your current quota.", code="insufficient_quota"),
        blocked=lambda server: _FILTERED,
        too_long=_OPENAI_TOO_LONG,
    ),
    "vllm": Kind(VLLMServer, "vLLM", "a choice", too_long=_OPENAI_TOO_LONG),
    "grok": Kind(
        GrokServer,
        "Grok",
        "a message",
        used_up=_GROK_USED_UP,
        blocked=lambda server: _FILTERED,
        too_long=_GROK_TOO_LONG,
    ),
    "grok by chat": Kind(
        GrokServer,
        "Grok",
        "a choice",
        used_up=_GROK_USED_UP,
        blocked=lambda server: _FILTERED,
        too_long=_GROK_TOO_LONG,
        fields={"api": "chat"},
    ),
    "gemini": Kind(
        GeminiServer,
        "Gemini",
        "a candidate",
        used_up=Fault("429", message="Quota exceeded.", details=(quota_failure("RequestsPerDayPerProject"),)),
        blocked=_blocked_gemini,
        too_long=Fault("400", message="The input token count (9) exceeds the maximum number of tokens allowed (8)."),
    ),
    "anthropic": Kind(
        AnthropicServer,
        "Anthropic",
        "content",
        used_up=Fault("400", message="Your credit balance is too low to access the API."),
        blocked=_blocked_anthropic,
        too_long=Fault("400", message="prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "http": Kind(
        ApplicationServer,
        "HTTP",
        ".text at $.reply",
        model=NAME,
        fields={"http": OPTIONS},
        used_up=Fault("402"),
        streams=False,
    ),
    "ollama": Kind(
        OllamaServer,
        "Ollama",
        "a message",
        too_long=Fault("400", message="the input exceeds the available context size (4096)"),
    ),
}  # fmt: skip
ALL = pytest.mark.parametrize("kind", list(KINDS))


def having(what: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if getattr(kind, what)])


async def call(kind: str, faults: Iterable[Fault] = (), stream: bool = False, **changes: Any) -> Response:
    known = KINDS[kind]
    prepare = changes.pop("prepare", None)
    served = changes.pop("served", known.model)
    server = known.server(Behaviour(faults=deque(faults), models=(served,), api_key=KEY))
    if prepare is not None:
        prepare(server)
    async with server:
        endpoint = replace(
            Endpoint(NAME, kind.split()[0], server.url, api_key_env="THE_KEY", api_key=KEY, **known.fields), **changes
        )
        return await ask(endpoint, known.model, stream)


async def ask(endpoint: Endpoint, model: str, stream: bool = False) -> Response:
    provider = make_provider.provider(endpoint)
    try:
        return await provider.generate(Request(model, job_pb2.Sampling(), TASK, ITEM, stream=stream))
    finally:
        await provider.close()


async def failure(kind: str, *faults: Fault, **changes: Any) -> ProviderError:
    """The failed call's error, whose sentence names the endpoint, says what to do and holds no key."""
    with pytest.raises(ProviderError) as caught:
        await call(kind, faults, **changes)
    error = caught.value
    sentences = error.message.split(". ")
    assert NAME in sentences[0] or error.message.startswith("AI provider error: ")
    assert len(sentences) > 1, f"nothing to do: {error.message}"
    assert error.message.endswith(".")
    assert KEY not in error.message
    assert KEY[:12] not in error.message
    return error


def flags(error: ProviderError) -> set[str]:
    return {name for name in ("retryable", "fatal", "rate_limited", "unreachable") if getattr(error, name)}


@ALL
async def test_a_rate_limit_without_a_wait_is_paced_and_costs_no_try(kind: str) -> None:
    error = await failure(kind, Fault("429", message="slow down"))
    assert flags(error) == {"retryable", "rate_limited"}
    assert error.retry_after_s is None
    assert "in the endpoints file" in error.message
    assert kind == "ollama" or "slow down" in error.message, "the provider's own words say more"


@ALL
async def test_a_rate_limit_with_a_wait_tells_it(kind: str) -> None:
    error = await failure(kind, Fault("429", retry_after="7", message="slow down"))
    assert flags(error) == {"retryable", "rate_limited"}
    assert error.retry_after_s == 7.0


async def test_googles_own_way_to_tell_the_wait_counts_before_the_header() -> None:
    error = await failure("gemini", Fault("429", retry_after="60", details=(retry_info("26s"),)))
    assert error.retry_after_s == 26.0


@having("used_up")
async def test_an_exhausted_quota_fails_the_job_at_once(kind: str) -> None:
    fault = KINDS[kind].used_up
    assert fault is not None
    error = await failure(kind, fault)
    assert flags(error) == {"fatal"}
    assert "used up" in error.message


@ALL
async def test_a_server_error_is_tried_again(kind: str) -> None:
    error = await failure(kind, Fault("500", message="out of memory"))
    assert flags(error) == {"retryable"}
    assert error.message == (f"{NAME} failed with status 500: out of memory. Check its log or status page, then retry.")


@ALL
async def test_a_silent_server_is_given_up_in_time(kind: str) -> None:
    error = await failure(kind, Fault("hang"), timeout_s=0.2)
    assert flags(error) == {"retryable"}
    assert "Raise timeout_s or lower concurrency." in error.message


@ALL
async def test_a_lost_connection_is_tried_again(kind: str) -> None:
    error = await failure(kind, Fault("reset"))
    assert flags(error) == {"retryable"}
    assert "closed the connection" in error.message


@ALL
@pytest.mark.parametrize("fault", ["truncated", "garbled"])
async def test_an_answer_that_is_no_whole_json_is_tried_again(kind: str, fault: str) -> None:
    error = await failure(kind, Fault(fault))
    assert flags(error) == {"retryable"}
    assert "cut an answer short: it is not whole JSON" in error.message


@having("streams")
async def test_a_stream_that_breaks_off_is_no_answer(kind: str) -> None:
    error = await failure(kind, Fault("broken"), stream=True)
    assert flags(error) == {"retryable"}
    assert "cut an answer short" in error.message


@ALL
async def test_an_empty_answer_says_what_is_missing(kind: str) -> None:
    error = await failure(kind, Fault("empty"))
    # An application whose answers lack the configured place is configured wrong: no retry mends that.
    assert flags(error) == (set() if kind == "http" else {"retryable"})
    assert KINDS[kind].lacks in error.message


@having("blocked")
async def test_a_safety_block_is_the_models_refusal_and_no_failure(kind: str) -> None:
    blocked = KINDS[kind].blocked
    assert blocked is not None
    fault = blocked(None) if blocked not in (_blocked_gemini, _blocked_anthropic) else None
    response = await call(kind, [fault] if fault else [], prepare=None if fault else blocked)
    assert response.refused
    assert not response.input_truncated


@having("too_long")
async def test_a_prompt_that_does_not_fit_is_the_items_outcome_and_no_failure(kind: str) -> None:
    fault = KINDS[kind].too_long
    assert fault is not None
    response = await call(kind, [fault])
    assert response.input_truncated
    assert not response.refused


@ALL
@pytest.mark.parametrize("status", ["401", "403"])
async def test_a_refused_key_fails_the_job_and_is_not_shown(kind: str, status: str) -> None:
    error = await failure(kind, Fault(status, message=f"Incorrect API key provided: {KEY}."))
    assert flags(error) == {"fatal"}
    remedy = "Set THE_KEY where the evaluator runs and restart it."
    said = re.fullmatch(rf"{NAME} refused the key \((.*)\)\. {re.escape(remedy)}", error.message)
    assert said, error.message
    assert said[1].startswith("Incorrect API key provided: [key]")
    assert KEY not in error.message


@ALL
@pytest.mark.parametrize("shown", [f"{KEY[:4]}***{KEY[-4:]}", f"{KEY[:4]}…", "sk-pr********9XyZ", f"...{KEY[-4:]}"])
async def test_a_refusal_shows_no_part_of_the_key(kind: str, shown: str) -> None:
    error = await failure(kind, Fault("401", message=f"Incorrect API key provided: {shown}. Ask <b>it</b>"))
    assert "Incorrect API key provided: [key]" in error.message
    for part in (KEY[:4], KEY[-4:], "XyZ"):
        assert part not in error.message


@ALL
async def test_a_wrong_key_is_told_as_the_provider_tells_it(kind: str) -> None:
    error = await failure(kind, api_key="sk-another")
    assert flags(error) == {"fatal"}
    assert re.search(r"refused the key \(.+\)\. Set THE_KEY", error.message), error.message


@ALL
async def test_a_missing_key_is_told_without_a_call(kind: str) -> None:
    endpoint = Endpoint(
        kind.split()[0], kind.split()[0], "http://127.0.0.1:9", api_key_env="THE_KEY", **KINDS[kind].fields
    )
    with pytest.raises(ProviderError) as caught:
        await ask(endpoint, KINDS[kind].model)
    assert flags(caught.value) == {"fatal"}
    assert caught.value.message == f"AI provider error: API key not configured for {KINDS[kind].label}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "http"])
async def test_a_missing_model_fails_the_job_with_its_name(kind: str) -> None:
    error = await failure(kind, served="another")
    assert flags(error) == {"fatal"}
    assert "does not have model m." in error.message


@ALL
async def test_a_server_that_is_not_there_is_away_as_a_whole(kind: str) -> None:
    port = free_port()
    endpoint = Endpoint(NAME, kind.split()[0], f"http://127.0.0.1:{port}", **KINDS[kind].fields)
    with pytest.raises(ProviderError) as caught:
        await ask(endpoint, KINDS[kind].model)
    assert flags(caught.value) == {"retryable", "unreachable"}
    assert caught.value.message.startswith(f"{NAME} does not answer at 127.0.0.1:{port}. ")


@ALL
async def test_another_server_at_the_address_is_told_with_the_setting_to_correct(kind: str) -> None:
    error = await failure(kind, Fault("404", message="Not Found"))
    assert flags(error) == {"fatal"}
    assert "base_url" in error.message


@ALL
async def test_a_refused_call_is_the_items_failure_in_the_providers_words(kind: str) -> None:
    error = await failure(kind, Fault("400", message=f"strange field, key {KEY}"))
    assert flags(error) == set()
    assert error.message == (
        f"{NAME} refused a call with status 400: strange field, key [key]. Correct the cause, then retry."
    )
