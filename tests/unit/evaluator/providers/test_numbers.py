"""Whatever a provider sends, a reader gives an answer or the provider layer's own error; what can be read stays."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services import numbers
from services.evaluator import item_result, make_provider
from services.evaluator.items.task import Response
from services.evaluator.provider_batches.base import Answer, Batch, Line
from services.evaluator.provider_batches.worker import batch_api
from services.evaluator.providers.protocol.provider import Listing, ProviderError
from tests.parts import NIGHTLY
from tests.unit.evaluator import wire_answers as wires
from tests.unit.evaluator.wire_answers import Raw, Session
from touchstone.v1 import endpoint_pb2

EXAMPLES = int(os.environ.get("TOUCHSTONE_FUZZ_EXAMPLES", "2000" if NIGHTLY else "500"))
"""Of the large run, for each kind of provider and of call."""
LIES: tuple[Any, ...] = (
    *(Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e308"), Raw("-1e308"), Raw("1e999"), Raw("1" + "0" * 400)),
    *(Raw("-" + "9" * 400), Raw("7" * 5000), -1, -100, -0.5, 2**31, 2**53, 2**63, 2**64, 0.5, True, False, None),
    *("", "5", "NaN", "-5", "9" * 5000, "²", "\ud800", "a" * 3000, [], {}, [[]], [None], [1], ["x"], {"a": 1}),
    *([{}], [{"type": []}], {"code": []}, {"message": {"message": []}}, Raw("[" * 5000 + "]" * 5000)),
    *(Raw('{"a":' * 900 + "1" + "}" * 900), Raw('"\xff\xfe"'), Raw("tru"), Raw("\\"), Raw('"\\ud83d"')),
)
"""What stands in the place of a value."""
NUMBERS = [lie for lie in LIES if isinstance(lie, int | float) or (isinstance(lie, Raw) and lie[-1] in "0123456789yN")]
HEADERS = (
    "nan",
    "inf",
    "-1",
    "1e999",
    "9" * 5000,
    "²",
    "Fri, 31 Dec 9999 23:59:59 -9999",
    "Mon, 00 Jan 0000",
    "\u0663",
)
JSON = st.recursive(
    st.sampled_from(LIES) | st.text(max_size=3) | st.floats() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def lied_to(document: Any) -> st.SearchStrategy[bytes]:
    """The document as bytes with one to three of its places lied about, a field missing, or its end cut off."""
    every = wires.places(document)

    @st.composite
    def make(draw: st.DrawFn) -> bytes:
        lied = document
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.sampled_from(every))
            lie = draw(JSON)
            try:
                lied = wires.changed(lied, at, lie)
            except (KeyError, IndexError, TypeError, ValueError):
                continue  # An earlier lie stands where this one was to go.
        raw = wires.written(lied)
        if draw(st.booleans()):
            raw = raw[: draw(st.integers(0, len(raw)))]
        return raw

    return make()


def run(call: Awaitable[Any]) -> Any:
    """What comes back, or the ProviderError; any other error is the test's."""

    async def until_done() -> Any:
        try:
            return await call
        except ProviderError as error:
            return error

    found = asyncio.run(until_done())
    if isinstance(found, ProviderError):
        assert found.message
        assert found.retry_after_s is None or 0 <= found.retry_after_s <= numbers.MOST_WAIT_S
    return found


def check(response: Response) -> None:
    """The response can be scored, stored and shown."""
    assert response.cost_usd is None or 0 <= response.cost_usd <= numbers.MOST_USD
    for count in (response.input_tokens, response.output_tokens, response.reasoning_tokens):
        assert count is None or 0 <= count <= 3 * numbers.MOST_TOKENS
    assert all(math.isfinite(one.loglikelihood) for one in response.continuations)
    if not response.continuations:
        item = item_result.answered(wires.TASK, wires.ITEM, 0, 0, response, 1)
        assert item.SerializeToString()


def check_models(models: tuple[endpoint_pb2.Model, ...]) -> None:
    for model in models:
        assert model.SerializeToString()
        for value in (model.parameters_b, model.input_price, model.output_price):
            assert math.isfinite(value)
            assert value >= 0
        assert min(model.context_length, model.disk_bytes, model.memory_bytes) >= 0


def asked(kind: str, raw: bytes, *, stream: bool = False, status: int = 200) -> Any:
    session = Session(raw, wires.STREAM_TYPE.get(kind, "text/event-stream") if stream else "application/json", status)
    found = run(wires.provider(kind, session).generate(wires.request(stream=stream)))
    if isinstance(found, Response):
        check(found)
    return found


# -- one lie at a time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", wires.WHOLE)
def test_a_number_that_cannot_be_costs_no_answer(kind: str) -> None:
    document = wires.WHOLE[kind]
    counts = [
        at for at in wires.places(document) if isinstance(wires.value_at(document, at), int | float) and at != ("done",)
    ]
    assert counts
    for at in counts:
        for lie in NUMBERS:
            found = asked(kind, wires.written(wires.changed(document, at, lie)))
            assert isinstance(found, Response), (at, lie[:20] if isinstance(lie, str) else lie, found)
            assert found.text == wires.ANSWER


@pytest.mark.parametrize("lie", ["NaN", "Infinity", "-100", "1e308", "1" + "0" * 400, "10001"])
def test_a_cost_that_cannot_be_is_not_known_and_named(lie: str) -> None:
    found = asked("openai", wires.written(wires.changed(wires.WHOLE["openai"], ("usage", "cost"), Raw(lie))))
    assert found.text == wires.ANSWER
    assert found.cost_usd is None
    (said,) = found.doubtful
    assert said.startswith("cost is ")
    assert len(said) < 40


def test_tokens_of_a_lie_are_not_0() -> None:
    for kind, key in (("gemini", "candidatesTokenCount"), ("ollama", "eval_count"), ("anthropic", "output_tokens")):
        document = wires.WHOLE[kind]
        at = next(at for at in wires.places(document) if at[-1] == key)
        assert asked(kind, wires.written(wires.changed(document, at, -1))).output_tokens is None, kind
    ticks = wires.changed(wires.WHOLE["grok"], ("usage", "cost_in_usd_ticks"), Raw("NaN"))
    assert asked("grok", wires.written(ticks)).cost_usd is None


@pytest.mark.parametrize("kind", wires.WHOLE)
@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms"])
def test_a_wait_that_cannot_be_is_none(kind: str, header: str) -> None:
    for value in HEADERS:
        provider = wires.provider(kind, Session(b"{}", status=429, headers={header: value}))
        error = run(provider.generate(wires.request()))
        assert error.rate_limited, value


# -- anything ---------------------------------------------------------------------------------------------------------


def whole_answers(kind: str, raw: bytes, status: int) -> None:
    asked(kind, raw, status=status)


def streamed_answers(kind: str, raws: list[bytes], cut: int) -> None:
    ending = b"\n" if kind == "ollama" else b"\n\n"
    start = b"" if kind == "ollama" else b"data: "
    body = b"".join(start + raw + ending for raw in raws)
    asked(kind, body[: len(body) - cut], stream=True)


def listings(kind: str, raw: bytes) -> None:
    found = run(wires.provider(kind, Session(raw)).list_models())
    if isinstance(found, Listing):
        check_models(found.models)
        assert isinstance(found.server, str)


def scored_choices(raw: bytes) -> None:
    provider = wires.provider("vllm", Session(raw))
    found = run(provider.loglikelihoods(wires.request()))
    assert isinstance(found, ProviderError), "its log-likelihoods prove nothing"
    provider._loglikelihoods._proved[wires.MODEL] = 0  # type: ignore[attr-defined]
    found = run(provider.loglikelihoods(wires.request()))
    if isinstance(found, Response):
        check(found)


def batches(kind: str, state: bytes, listed: bytes, lines: list[bytes]) -> None:
    endpoint = wires.endpoint(kind)
    api = batch_api(endpoint, make_provider.provider(endpoint))
    assert api is not None

    async def take(answer: Answer) -> None:
        assert answer.position >= 0
        if answer.reply is not None:
            with suppress(ProviderError):
                check(api.read(answer.reply, wires.MODEL, "{}", None))

    wires.with_session(api, Session(listed))
    assert isinstance(run(api.find("mark")), list | ProviderError)
    run(api.create(wires.MODEL, "mark", []))
    run(api.upload("mark", [Line(0, {})]))
    wires.with_session(api, Session(state))
    found = run(api.state("batch_1"))
    if isinstance(found, Batch):
        assert 0 <= found.done < 2**31
        assert 0 <= found.failed < 2**31
        wires.with_session(api, Session(b"\n".join(lines)))
        run(api.answers(found, take))


FEW = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
STATUSES = st.sampled_from((200, 200, 200, 400, 403, 404, 413, 429, 500, 503, 529))


@pytest.mark.parametrize("size", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.stack)])
class TestAnything:
    @pytest.mark.parametrize("kind", wires.WHOLE)
    def test_a_whole_answer(self, kind: str, size: settings) -> None:
        size(
            given(raw=lied_to(wires.WHOLE[kind]), status=STATUSES)(lambda raw, status: whole_answers(kind, raw, status))
        )()

    @pytest.mark.parametrize("kind", wires.STREAMED)
    def test_a_streamed_answer(self, kind: str, size: settings) -> None:
        events = st.tuples(*(lied_to(event) | st.just(wires.written(event)) for event in wires.STREAMED[kind])).map(
            list
        )
        size(given(raws=events, cut=st.integers(0, 30))(lambda raws, cut: streamed_answers(kind, raws, cut)))()

    @pytest.mark.parametrize("kind", wires.LISTED)
    def test_a_listing(self, kind: str, size: settings) -> None:
        size(given(raw=lied_to(wires.LISTED[kind]))(lambda raw: listings(kind, raw)))()

    def test_log_likelihoods(self, size: settings) -> None:
        size(given(raw=lied_to(wires.SCORED))(scored_choices))()

    @pytest.mark.parametrize("kind", wires.BATCH_STATES)
    def test_a_batch_api(self, kind: str, size: settings) -> None:
        lines = st.tuples(*map(lied_to, wires.BATCH_LINES)).map(list)
        size(
            given(state=lied_to(wires.BATCH_STATES[kind]), listed=lied_to(wires.BATCH_LISTS[kind]), lines=lines)(
                lambda state, listed, lines: batches(kind, state, listed, lines)
            )
        )()
