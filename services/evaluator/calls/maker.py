"""Makes a user's call at one endpoint.

A server that speaks OpenAI's protocol gets the request as it was written, and its answer goes back as it comes. Other
kinds are asked as they are for a row of a dataset, and their answers are written in OpenAI's form.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from services import further_fields
from services.bus import Bus, Outbox
from services.evaluator.calls import chat_form, responses_form
from services.evaluator.calls.meter import Meter, RunModels, as_row, most_usd
from services.evaluator.calls.refusals import (
    RefusedCallError,
    busy,
    in_callers_words,
    of_provider,
    of_reply,
    of_stored,
    paused,
    without_address,
)
from services.evaluator.calls.streams import RelayedStream, Streamed, Writer
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.make_provider import check_content
from services.evaluator.measuring import count_failure, count_tokens
from services.evaluator.pacing.retry import delay_s
from services.evaluator.providers import grok_wire
from services.evaluator.providers.openai import errors, wire
from services.evaluator.providers.openai.relay import Relay, RelayingProvider
from services.evaluator.providers.openai.wire import Wire
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.capabilities import capabilities
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.stored.responses import BudgetStore
from services.telemetry import metrics
from touchstone.v1.call_pb2 import Call
from touchstone.v1.dataset_pb2 import DatasetManifest
from touchstone.v1.endpoint_pb2 import Prices
from touchstone.v1.scoring_pb2 import Scoring

log = logging.getLogger(__name__)

_MOST_WAIT_S = 60.0
_STORED_S = 5.0
_MADE_HERE = "engine"
"""The kind whose servers know models by the paths of their files."""
_JSON = {"content-type": "application/json"}
_NO_ROWS = DatasetTask(DatasetManifest(), Scoring(), 0, 0, cast(Any, None))
"""Providers that ask for an item's task find one without rows, which is never read."""
Make = Callable[[], Awaitable[None]]
_End = tuple[Call.Outcome, int, str]
"""Outcome, status, and why there is no answer."""


@dataclass(slots=True)
class _One:
    """A call under way. `mapped`: its fields have other names on their way to the provider."""

    call: Call
    asked: dict[str, Any]
    writer: Writer
    outbox: Outbox
    meter: Meter
    mapped: bool = False


class CallMaker:
    """Calls of one endpoint."""

    def __init__(
        self, bus: Bus, worker: EndpointWorker, listing: EndpointListing, evaluator: str, budgets: BudgetStore | None
    ) -> None:
        self._bus = bus
        self._worker = worker
        self._listing = listing
        self._budgets = budgets
        self._endpoint = worker.endpoint
        self._evaluator = evaluator
        self._models = RunModels()
        self._has_responses = True
        self._ending: set[asyncio.Task[None]] = set()

    async def make(self, call: Call, body: bytes, outbox: Outbox) -> None:
        """Makes the call once, and puts its answer, or why there is none, into the outbox."""
        meter = Meter(self._bus, call, self._evaluator, self._budgets, self._models)
        # What is recorded is stored before its answer is whole.
        outbox.holds_last = bool(call.run)
        asked: dict[str, Any] = json.loads(body)
        one = _One(call, asked, _writer(call, asked), outbox, meter)
        end: _End = (Call.OUTCOME_CANCELLED, 499, "The client went away.")
        try:
            end = await self._answered(one)
        finally:
            # In another task: a client may go away as soon as it has the last piece of its answer.
            ending = asyncio.create_task(meter.end(*end))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)

    async def _answered(self, one: _One) -> _End:
        try:
            await self._made(one)
            return Call.OUTCOME_ANSWERED, 200, ""
        except RefusedCallError as error:
            refusal = error
        except ProviderError as error:
            refusal = of_provider(self._endpoint, error, one.asked)
        except Exception:
            log.exception("a call of %s at %s failed", one.call.model, one.call.endpoint)
            refusal = RefusedCallError(500, "The evaluator failed to make the call. Its log has the details.")
        if refusal.free:
            one.meter.costs_nothing()
        if one.mapped:
            refusal = in_callers_words(refusal, one.asked)
        return await self._refuse(refusal, one)

    async def stored(self) -> None:
        """Returns once the ends of calls are stored, and in any case soon."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=_STORED_S)

    async def _made(self, one: _One) -> None:
        endpoint, call = self._endpoint, one.call
        if call.run:
            request, row = as_row(call, one.asked)
            if call.budget_usd:
                one.meter.reserve(most_usd(endpoint, call, one.asked, row, self._prices(call.model)))
            one.meter.record(request)
        if not endpoint.configured:
            raise RefusedCallError(503, without_address(endpoint, endpoint.unusable))
        if other := self._worker.busy_with(call.model):
            raise busy(
                f"{endpoint.name} works with one model at a time, now with {other}. Try again when its job has ended."
            )
        make = self._relaying(one) or self._mapping(one)
        async with self._slot(call):
            await one.meter.begin()
            sent = time.monotonic()
            try:
                await make()
            except (ProviderError, RefusedCallError) as error:
                cause = error.cause if isinstance(error, RefusedCallError) else error
                count_failure(endpoint.name, cause)
                if cause is not None and cause.rate_limited:
                    self._slow(call.model, cause, sent)
                if cause is not None and cause.of_key:
                    self._worker.paces.denied(call.model, cause.message, time.monotonic())
                raise
            metrics.CALL_SECONDS.observe(time.monotonic() - sent, endpoint.name)
            self._worker.paces.succeeded(call.model, time.monotonic())

    def _prices(self, model: str) -> Prices | None:
        listed = next((one for one in self._listing.models if one.model == model), None)
        return prices.of(self._endpoint, model, listed)

    def _slow(self, model: str, error: ProviderError, sent: float) -> None:
        """After a rate limit, for calls of jobs as well. `sent` is in monotonic seconds."""
        paces, now = self._worker.paces, time.monotonic()
        paces.refused(model, sent, now, whole=error.of_endpoint)
        paces.pause(model, delay_s(error, 1), now, whole=error.of_endpoint)

    def _paused_s(self, model: str) -> float:
        return self._worker.paces.limited_s(model, time.monotonic())

    @asynccontextmanager
    async def _slot(self, call: Call) -> AsyncGenerator[None]:
        if (left_s := self._paused_s(call.model)) >= _MOST_WAIT_S:
            raise paused(self._endpoint, left_s)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_MOST_WAIT_S):
                    await stack.enter_async_context(self._worker.slot(call.owner, call.model))
            except TimeoutError:
                if (left_s := self._paused_s(call.model)) > 0:
                    raise paused(self._endpoint, left_s) from None
                raise busy(f"All slots of {self._endpoint.name} are taken. Try again in a moment.") from None
            yield

    async def _refuse(self, refusal: RefusedCallError, one: _One) -> _End:
        outcome = Call.OUTCOME_REFUSED if refusal.status < 500 and refusal.status != 429 else Call.OUTCOME_FAILED
        if one.outbox.started:
            await one.outbox.write(one.writer.failure(refusal))
        else:
            one.outbox.begin(refusal.status, refusal.headers)
            await one.outbox.write(chat_form.encode(refusal.body))
        return outcome, refusal.status, refusal.message

    # -- as it was written ---------------------------------------------------------------------------------------

    def _relaying(self, one: _One) -> Make | None:
        """None where the endpoint does not speak the API that the call is for."""
        provider, endpoint, call = self._worker.provider, self._endpoint, one.call
        is_chat = call.api == Call.API_CHAT
        if not isinstance(provider, RelayingProvider):
            return None
        if is_chat and endpoint.kind == "grok" and endpoint.api != "chat":
            return None
        if not is_chat and not self._has_responses:
            return None
        chat = grok_wire.CHAT if endpoint.kind == "grok" else wire.CHAT
        chosen = chat if is_chat else grok_wire.RESPONSES
        return lambda: self._relay(provider, chosen, one)

    async def _relay(self, provider: RelayingProvider, chosen: Wire, one: _One) -> None:
        call, asked, outbox = one.call, one.asked, one.outbox
        shown = call.model if self._endpoint.kind == _MADE_HERE else ""
        stream = RelayedStream(outbox, asked, shown)
        heard = stream.heard if call.stream else None
        relayed = await provider.relay(Relay(chosen, call.model, stream.body, heard))
        reply = relayed.reply
        if relayed.response is not None:
            count_tokens(self._endpoint.name, relayed.response)
            one.meter.took(relayed.response)
        if self._lacks_responses(reply, one):
            self._has_responses = False
            await self._mapping(one)()
            return
        if reply.status != 200:
            raise of_reply(self._endpoint, reply, call.model, chosen.path, asked)
        if relayed.response is None and (call.stream or not _is_answer(reply.body, asked)):
            words = without_address(self._endpoint, reply.error_text)
            said = f": {words}" if words else ""
            raise RefusedCallError(502, f"{self._endpoint.name} failed while answering{said}. Send the request again.")
        if outbox.started:
            await stream.end()
        elif call.stream and relayed.response is not None:  # It does not stream.
            await Streamed(one.writer, outbox).end(relayed.response)
        else:
            outbox.begin(200, _JSON)
            await outbox.write(chat_form.encode(reply.body | ({"model": shown} if shown else {})))

    def _lacks_responses(self, reply: Reply, one: _One) -> bool:
        """Whether the server has no such path. A server that has it also says 404 for what it does not keep."""
        if reply.status not in (404, 405) or one.call.api != Call.API_RESPONSES or errors.is_model_missing(reply):
            return False
        return not of_stored(reply, one.asked)

    # -- in another form -----------------------------------------------------------------------------------------

    def _mapping(self, one: _One) -> Make:
        """Raises RefusedCallError, and ProviderError, for what the endpoint cannot be asked."""
        endpoint, call = self._endpoint, one.call
        one.mapped = True
        body = one.asked if call.api == Call.API_CHAT else responses_form.as_chat(one.asked)
        found = chat_form.read(body, endpoint.kind)
        fields = further_fields.fields(found.sampling)
        takes = capabilities(endpoint, call.model)
        check_content(endpoint.kind, endpoint, call.model, takes, found.item.messages, fields)
        stream = Streamed(one.writer, one.outbox)
        request = Request(
            call.model,
            found.sampling,
            _NO_ROWS,
            found.item,
            stream=call.stream,
            repeats=2,  # Otherwise an absent temperature is sent as 0, which is right for items alone.
            heard=stream.heard if call.stream else None,
        )
        return lambda: self._ask(request, one, stream)

    async def _ask(self, request: Request, one: _One, stream: Streamed) -> None:
        response = chat_form.with_ids(await self._worker.provider.generate(request), _number(one.call))
        count_tokens(self._endpoint.name, response)
        one.meter.took(response)
        if response.input_truncated and not response.text:
            message = f"The messages are longer than the context of {request.model}. Shorten them."
            raise RefusedCallError(400, message, "messages", code="context_length_exceeded")
        if request.stream:
            await stream.end(response)
        else:
            one.outbox.begin(200, _JSON)
            await one.outbox.write(chat_form.encode(one.writer.whole(response)))


def _number(call: Call) -> str:
    return call.call_id.replace("-", "")


def _writer(call: Call, asked: Mapping[str, Any]) -> Writer:
    number = _number(call)
    if call.api == Call.API_RESPONSES:
        return responses_form.Written(number, call.model, call.started_at.seconds, asked)
    options = asked.get("stream_options")
    with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return chat_form.Completion(number, call.model, call.started_at.seconds, with_usage)


def _is_answer(body: Any, asked: Mapping[str, Any]) -> bool:
    held = "choices" if "messages" in asked else "output"
    return isinstance(body, dict) and not body.get("error") and isinstance(body.get(held), list)
