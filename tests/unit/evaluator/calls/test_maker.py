"""Calls at an endpoint whose provider answers at once: metering, rate limits, and clients that leave at any moment."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.bus import Outbox
from services.errors import UnavailableError
from services.evaluator.calls.maker import CallMaker
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.providers.openai.relay import Relay, Relayed
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.settings import Settings
from services.words.jobs import BUDGET_HEADER
from tests.waiting import until
from touchstone.v1.call_pb2 import Call, CallText
from touchstone.v1.results_service_pb2 import AdmitCallResponse

GUIDE = Path(__file__).parents[4] / "docs/api.md"
HELLO = [{"role": "user", "content": "hello"}]
WHOLE = Response("HELLO", finish_reason="stop", input_tokens=3, output_tokens=5, cost_usd=0.5)
SLOW = ProviderError("Slow down.", rate_limited=True, retryable=True, retry_after_s=30.0)


class Usage:
    """The part of the bus that a meter needs."""

    def __init__(self) -> None:
        self.told: list[Call] = []

    async def publish_usage(self, call: Call) -> int:
        held = Call()
        held.CopyFrom(call)
        await asyncio.sleep(0)
        self.told.append(held)
        return len(self.told)

    async def publish_call_text(self, call: Call, text: CallText) -> None: ...

    @property
    def ends(self) -> list[Call]:
        return [call for call in self.told if call.outcome != Call.OUTCOME_UNSPECIFIED]


class Store:
    """What the results service says of budgets: whether the call may be made, or that it does not answer."""

    answer: AdmitCallResponse | None = None
    asked: list[tuple[str, int]]

    def __init__(self) -> None:
        self.asked = []

    async def admits(self, call_id: str, position: int) -> AdmitCallResponse:
        self.asked.append((call_id, position))
        if self.answer is None:
            raise UnavailableError("No.")
        return self.answer


class Asked:
    """A provider of another protocol. It raises `error`, if there is one."""

    error: ProviderError | None = None
    sent: Request | None = None

    async def generate(self, request: Request) -> Response:
        self.sent = request
        for piece in ("HEL", "LO") if request.heard else ():
            assert request.heard
            await request.heard({"message": {"content": piece}})
            await asyncio.sleep(0)
        if self.error:
            raise self.error
        return WHOLE


class Relaying:
    """A server of OpenAI's protocol that gives the same reply to all."""

    def __init__(self, status: int, body: Any) -> None:
        self.reply = Reply(status, {}, body, json.dumps(body), 1.0)
        self.paths: list[str] = []

    async def relay(self, relay: Relay) -> Relayed:
        self.paths.append(relay.wire.path)
        return Relayed(self.reply, None, relay.model)

    async def generate(self, request: Request) -> Response:
        return WHOLE


def all_free(world: World) -> bool:
    return not world.worker.slots_busy


class World:
    """One endpoint and what its calls are answered. Calls are made by `provider`."""

    def __init__(self, provider: Any, kind: str = "ollama") -> None:
        self.usage = Usage()
        nothing = cast(Any, None)
        prices = {"input": 1.0, "output": 1.0}
        endpoint = Endpoint("local", kind, "http://127.0.0.1:9", concurrency=2, prices=prices)
        self.worker = EndpointWorker(
            endpoint, provider, cast(Any, self.usage), nothing, nothing, nothing, Settings("e", "")
        )
        self.store = Store()
        listing: Any = SimpleNamespace(models=[])
        self.maker = CallMaker(cast(Any, self.usage), self.worker, listing, "e", cast(Any, self.store))

    def call(
        self,
        outbox: Outbox,
        api: Call.Api = Call.API_CHAT,
        model: str = "m",
        budget_usd: float = 0.0,
        run: str = "",
        **body: Any,
    ) -> Any:
        made = Call(
            call_id="1", owner="ann", endpoint="local", model=model, api=api, stream=body.get("stream", False), run=run
        )
        if budget_usd:
            made.budget_usd, made.run = budget_usd, "support"
        return self.maker.make(made, json.dumps({"model": model, **body}).encode(), outbox)

    async def answer(self, api: Call.Api = Call.API_CHAT, **body: Any) -> tuple[int, Any]:
        """Status and body of an answer that is not streamed."""
        outbox = Outbox()
        await self.call(outbox, api, **({"messages": HELLO} if api == Call.API_CHAT else {}) | body)
        outbox.end()
        status = json.loads((await outbox.take())[1])["status"]
        return status, json.loads((await outbox.take())[1])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_at_any_moment_leaves_one_end_and_no_slot(stream: bool) -> None:
    outcomes = set()
    for steps in itertools.count():
        world = World(Asked())
        making = asyncio.create_task(world.call(Outbox(), messages=HELLO, stream=stream))
        for _ in range(steps):
            await asyncio.sleep(0)
        if whole := making.done():
            await making
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        await world.maker.stored()
        await until(partial(all_free, world))
        begun = [call for call in world.usage.told if call not in world.usage.ends]
        assert len(world.usage.ends) == bool(steps), "a task that is cancelled before it starts makes no call"
        if steps:
            (end,) = world.usage.ends
            assert len(begun) <= 1
            assert end.HasField("output_tokens") == (end.outcome == Call.OUTCOME_ANSWERED)
            outcomes.add(end.outcome)
        if whole:
            break
    assert outcomes == {Call.OUTCOME_CANCELLED, Call.OUTCOME_ANSWERED}


async def test_an_answer_that_its_client_does_not_take_is_metered_with_what_it_took() -> None:
    class Long(Asked):
        async def generate(self, request: Request) -> Response:
            return Response("x" * 2_000_000, input_tokens=3, output_tokens=7)

    world = World(Long())
    outbox = Outbox()
    making = asyncio.create_task(world.call(outbox, messages=HELLO))
    await until(lambda: outbox.started)  # It now waits for room, as nobody takes the answer.
    assert not making.done()
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    await world.maker.stored()
    (end,) = world.usage.ends
    assert (end.outcome, end.output_tokens) == (Call.OUTCOME_CANCELLED, 7)


async def test_a_rate_limit_slows_the_calls_of_jobs_and_answers_speed_them_up() -> None:
    provider = Asked()
    world = World(provider)
    paces = world.worker.paces
    provider.error = SLOW
    status, body = await world.answer()
    assert (status, body["error"]["type"]) == (429, "rate_limit_error")
    pace = paces.of("m")
    assert pace is not None
    assert pace.slots == 1
    assert 29 < paces.limited_s("m", asyncio.get_running_loop().time()) < 31
    assert paces.of("other") is None
    provider.error = ProviderError("Slow down.", rate_limited=True, retryable=True, retry_after_s=0.0)
    assert (await world.answer(model="other"))[0] == 429
    assert paces.of("other") is not None
    provider.error = None
    assert (await world.answer(model="other"))[0] == 200
    assert paces.of("other") is None


async def test_calls_of_a_model_that_must_wait_do_not_hold_others_back() -> None:
    world = World(Asked())
    now = asyncio.get_running_loop().time()
    world.worker.paces.pause("m", 30, now, whole=False)
    waiting = asyncio.create_task(world.call(Outbox(), messages=HELLO))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert (await world.answer(model="other"))[0] == 200
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await world.maker.stored()


async def test_during_a_long_pause_a_call_is_refused_at_once() -> None:
    world = World(Asked())
    world.worker.paces.pause("m", 90, asyncio.get_running_loop().time(), whole=True)
    status, body = await world.answer()
    assert (status, body["error"]["code"]) == (429, "rate_limit_exceeded")
    assert "Try again in 90 s." in body["error"]["message"]
    assert [call.status for call in world.usage.told] == [429]


@pytest.mark.parametrize("body", [{}, {"choices": None}, [], {"output": []}])
async def test_what_is_no_answer_is_not_passed_on_as_one(body: Any) -> None:
    status, told = await World(Relaying(200, body), "openai").answer()
    assert (status, told["error"]["type"]) == (502, "server_error")


async def test_numbers_that_are_not_json_become_null() -> None:
    status, told = await World(Relaying(200, {"choices": [], "score": float("nan")}), "openai").answer()
    assert (status, told) == (200, {"choices": [], "score": None})


async def test_a_response_that_the_server_does_not_keep_is_not_found() -> None:
    error = {"message": "Response with id 'resp_9' not found.", "type": "invalid_request_error", "code": 404}
    provider = Relaying(404, {"error": error})
    world = World(provider, "vllm")
    status, told = await world.answer(Call.API_RESPONSES, input="hi", previous_response_id="resp_9")
    assert (status, told["error"]["message"]) == (404, "Response with id 'resp_9' not found")
    provider.reply = Reply(404, {}, {"detail": "Not Found"}, "", 1.0)
    status, told = await world.answer(Call.API_RESPONSES, input="hi", previous_response_id="resp_9")
    assert (status, told["error"]["param"]) == (400, "previous_response_id")
    assert (await world.answer(Call.API_RESPONSES, input="hi"))[0] == 200
    assert provider.paths == ["/responses"] * 2, "a server without the path is not asked again"


@pytest.mark.parametrize(
    ("api", "body", "param"),
    [
        (Call.API_RESPONSES, {"input": "a", "max_output_tokens": -1}, "max_output_tokens"),
        (Call.API_RESPONSES, {"input": "a", "reasoning": {"effort": "wild"}}, "reasoning.effort"),
        (Call.API_RESPONSES, {"input": "a", "text": {"verbosity": 7}}, "text.verbosity"),
        (Call.API_RESPONSES, {"input": "a", "text": {"format": {"type": "xml"}}}, "text.format"),
        (Call.API_RESPONSES, {"input": [{"role": "judge", "content": "a"}]}, "input"),
        (Call.API_RESPONSES, {"input": "a", "max_tool_calls": 3}, "max_tool_calls"),
        (Call.API_CHAT, {"messages": HELLO, "max_completion_tokens": -1}, "max_completion_tokens"),
        (Call.API_CHAT, {"messages": HELLO, "max_tokens": -1}, "max_tokens"),
        (Call.API_CHAT, {"messages": HELLO, "prediction": {"type": "content"}}, "prediction"),
    ],
)
async def test_a_refused_field_has_the_name_that_its_sender_used(
    api: Call.Api, body: dict[str, Any], param: str
) -> None:
    status, told = await World(Asked()).answer(api, **body)
    assert (status, told["error"]["param"]) == (400, param), told
    other = {"max_output_tokens": "max_completion_tokens", "reasoning.effort": "reasoning_effort"}.get(param, "\0")
    assert other not in told["error"]["message"]


async def test_an_answer_with_reasoning_may_be_sent_back() -> None:
    again = [*HELLO, {"role": "assistant", "content": "Hi", "reasoning": "Greet.", "refusal": None}, *HELLO]
    assert (await World(Asked()).answer(messages=again))[0] == 200


# -- every field of OpenAI's clients ------------------------------------------------------------------------------

FUNCTION = {"name": "f", "parameters": {"type": "object"}}
TOOLS = [{"type": "function", "function": FUNCTION}]
VALUES: dict[str, Any] = {
    "audio": {"voice": "a"}, "background": True, "context_management": [{"type": "compaction"}], "conversation": "c",
    "frequency_penalty": 0.5, "function_call": "auto", "functions": [FUNCTION], "include": ["web_search_call.results"],
    "instructions": "Be brief.", "logit_bias": {"1": 2}, "logprobs": True, "max_completion_tokens": 5, "max_tokens": 5,
    "max_output_tokens": 5, "max_tool_calls": 2, "metadata": {"a": "b"}, "modalities": ["text", "audio"],
    "moderation": {"a": 1}, "n": 2, "parallel_tool_calls": False, "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5, "previous_response_id": "resp_1", "prompt": {"id": "p"}, "prompt_cache_key": "k",
    "prompt_cache_options": {"a": 1}, "prompt_cache_retention": "24h", "reasoning": {"effort": "low"},
    "reasoning_effort": "low", "response_format": {"type": "json_object"}, "safety_identifier": "u", "seed": 7,
    "service_tier": "flex", "stop": ["a"], "store": True, "stream_options": {"include_usage": True}, "temperature": 0.3,
    "text": {"format": {"type": "json_object"}}, "tool_choice": "auto", "tools": TOOLS, "top_logprobs": 2, "top_p": 0.5,
    "truncation": "auto", "user": "u", "verbosity": "low", "web_search_options": {"a": 1}, "access_programs": ["a"],
    "image": {"a": 1},
}  # fmt: skip
APIS: list[tuple[Call.Api, str, Any]] = [(Call.API_CHAT, "messages", HELLO), (Call.API_RESPONSES, "input", "hello")]


def documented(api: Call.Api) -> dict[str, str]:
    """What docs/api.md says becomes of each field at another provider."""
    column = 1 if api == Call.API_CHAT else 2
    rows = re.findall(
        r"(?m)^\| (works where the kind has it|no effect|refused) \| (.*?) \| (.*?) \|$", GUIDE.read_text()
    )
    assert len(rows) == 3
    return {name: row[0].partition(" ")[0] for row in rows for name in re.findall(r"`(\w+)`", row[column])}


def test_the_guide_says_what_becomes_of_every_field_of_openais_client() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    own = {"model", "messages", "input", "stream"}
    assert documented(Call.API_CHAT).keys() == CompletionCreateParamsBase.__annotations__.keys() - own
    assert documented(Call.API_RESPONSES).keys() == ResponseCreateParamsBase.__annotations__.keys() - own


@pytest.mark.parametrize(("api", "required", "asked"), APIS)
async def test_every_field_works_has_no_effect_or_is_refused_as_the_guide_says(
    api: Call.Api, required: str, asked: Any
) -> None:
    tools = TOOLS if api == Call.API_CHAT else [{"type": "function", **FUNCTION}]
    with_tools = {"tools": tools}
    needs: dict[str, Any] = {"tool_choice": with_tools, "parallel_tool_calls": with_tools}
    if api == Call.API_CHAT:
        needs["top_logprobs"] = {"logprobs": True}

    async def sent(kind: str, **fields: Any) -> tuple[int, Any, str]:
        provider = Asked()
        status, told = await World(provider, kind).answer(api, **{required: asked} | fields)
        request = provider.sent
        return status, told, repr((request.sampling, request.item)) if request else ""

    for name, becomes in documented(api).items():
        base = needs.get(name, {})
        value = tools if name == "tools" else VALUES[name]
        ends = set()
        for kind in ("http", "anthropic", "ollama", "gemini"):
            status, told, made = await sent(kind, **base, **{name: value})
            if status == 200:
                ends.add("works" if made != (await sent(kind, **base))[2] else "no")
            else:
                assert status == 400, told
                assert told["error"]["param"].partition(".")[0] in (name, *base)
                ends.add("refused")
        assert ends - ({"refused"} if becomes == "works" else set()) == {becomes}, name


async def test_fields_that_ask_for_what_is_usual_are_taken() -> None:
    usual = {
        "n": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0.0,
        "logit_bias": {},
        "logprobs": False,
        "tools": TOOLS,
    }
    usual |= {"parallel_tool_calls": True, "verbosity": "medium", "response_format": {"type": "text"}, "user": None}
    for kind in ("ollama", "gemini", "anthropic", "grok"):
        status, told = await World(Asked(), kind).answer(Call.API_CHAT, messages=HELLO, **usual)
        assert status == 200, (kind, told)


async def test_a_call_with_a_budget_is_made_once_it_is_admitted() -> None:
    world = World(Asked())
    world.store.answer = AdmitCallResponse(admitted=True)
    assert (await world.answer(budget_usd=5.0, max_tokens=9))[0] == 200
    begin, end = world.usage.told
    assert world.store.asked == [("1", 1)]
    assert 0 < begin.reserved_usd < 0.001
    assert (begin.budget_usd, end.cost_usd) == (5.0, 0.5)


async def test_a_call_that_its_budget_does_not_allow_is_not_made_and_not_recorded() -> None:
    provider = Asked()
    world = World(provider)
    world.store.answer = AdmitCallResponse(admitted=False, cost_usd=4.9999)
    status, body = await world.answer(budget_usd=5.0, max_tokens=9)
    assert (status, body["error"]["code"], body["error"]["param"]) == (402, "budget_exceeded", BUDGET_HEADER)
    for words in ("budget of $5.00", "recorded run support", "$5.00 is spent", "Raise X-Touchstone-Budget-USD"):
        assert words in body["error"]["message"]
    assert provider.sent is None
    (end,) = world.usage.ends
    assert (end.outcome, end.reserved_usd, end.texts) == (Call.OUTCOME_REFUSED, 0, 0)
    world.store.answer = None
    status, body = await world.answer(budget_usd=5.0, max_tokens=9)
    assert (status, provider.sent) == (503, None)
    assert "budget cannot be checked" in body["error"]["message"]
    assert world.usage.ends[-1].reserved_usd == 0


async def test_the_first_call_of_a_model_too_many_for_its_run_is_not_made() -> None:
    provider = Asked()
    world = World(provider)
    world.store.answer = AdmitCallResponse(admitted=True, other_models=100)
    for more in ({"run": "support"}, {"budget_usd": 5.0, "max_tokens": 9}):
        status, body = await world.answer(**more)
        assert (status, body["error"]["param"], provider.sent) == (400, "X-Touchstone-Run", None)
        assert "The recorded run support has calls of 100 models already" in body["error"]["message"]
        assert (world.usage.ends[-1].texts, world.usage.ends[-1].reserved_usd) == (0, 0)
    world.store.answer = AdmitCallResponse(admitted=True, other_models=99)
    asked = len(world.store.asked)
    for _ in range(3):
        assert (await world.answer(run="support"))[0] == 200
    assert len(world.store.asked) == asked + 1, "a model that the run has is not asked about again"
    world.store.answer = None
    assert (await world.answer(model="another", run="support"))[0] == 200, "a store that is away holds up no call"


@pytest.mark.parametrize(
    ("error", "held"),
    [
        (SLOW, False),
        (ProviderError("Gone.", unreachable=True, free=True), False),
        (ProviderError("It broke off."), True),
    ],
)
async def test_a_failed_call_that_may_be_charged_keeps_what_is_reserved(error: ProviderError, held: bool) -> None:
    provider = Asked()
    provider.error = error
    world = World(provider)
    world.store.answer = AdmitCallResponse(admitted=True)
    assert (await world.answer(budget_usd=5.0, max_tokens=9))[0] != 200
    (end,) = world.usage.ends
    assert (end.reserved_usd > 0) == held
