"""Makes a user's call at one endpoint.

A server that speaks OpenAI's protocol gets the request as it was written, and its answer goes back as it comes. Other
kinds are asked as they are for a row of a dataset, and their answers are written in OpenAI's form.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from services import further_fields
from services.bus import Bus, Outbox
from services.evaluator.calls import chat_form, responses_form
from services.evaluator.calls.meter import Meter
from services.evaluator.calls.refusals import RefusedCallError, busy, of_provider, of_reply, without_address
from services.evaluator.calls.streams import RelayedStream, Streamed, Writer
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.items.task import Response
from services.evaluator.make_provider import check_content
from services.evaluator.providers import grok_wire
from services.evaluator.providers.openai import errors, wire
from services.evaluator.providers.openai.relay import Relay, RelayingProvider
from services.evaluator.providers.openai.wire import Wire
from services.evaluator.providers.protocol.capabilities import capabilities
from services.evaluator.providers.protocol.provider import ProviderError, Request
from touchstone.v1.call_pb2 import Call
from touchstone.v1.dataset_pb2 import DatasetManifest
from touchstone.v1.scoring_pb2 import Scoring

log = logging.getLogger(__name__)

_MOST_WAIT_S = 60.0
_STORED_S = 5.0
_MADE_HERE = "engine"
"""The kind whose servers know models by the paths of their files."""
_JSON = {"content-type": "application/json"}
_NO_ROWS = DatasetTask(DatasetManifest(), Scoring(), 0, 0, cast(Any, None))
"""Providers that ask for an item's task find one without rows, which is never read."""
Make = Callable[[], Awaitable[Response | None]]


class CallMaker:
    """Calls of one endpoint."""

    def __init__(self, bus: Bus, worker: EndpointWorker, evaluator: str) -> None:
        self._bus = bus
        self._worker = worker
        self._endpoint = worker.endpoint
        self._evaluator = evaluator
        self._has_responses = True
        self._ending: set[asyncio.Task[None]] = set()

    async def make(self, call: Call, body: bytes, outbox: Outbox) -> None:
        """Makes the call once, and puts its answer, or why there is none, into the outbox."""
        meter = Meter(self._bus, call, self._evaluator)
        asked: dict[str, Any] = json.loads(body)
        writer = _writer(call, asked)
        try:
            await self._made(call, asked, writer, outbox, meter)
        except asyncio.CancelledError:
            # In another task, as this one is ending.
            ending = asyncio.create_task(meter.end(Call.OUTCOME_CANCELLED, 499, error="The client went away."))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            raise
        except RefusedCallError as refusal:
            await self._refuse(refusal, writer, outbox, meter)
        except ProviderError as error:
            await self._refuse(of_provider(self._endpoint, error, asked), writer, outbox, meter)
        except Exception:
            log.exception("a call of %s at %s failed", call.model, call.endpoint)
            broken = RefusedCallError(500, "The evaluator failed to make the call. Its log has the details.")
            await self._refuse(broken, writer, outbox, meter)

    async def stored(self) -> None:
        """Returns once the ends of cancelled calls are stored, and in any case soon."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=_STORED_S)

    async def _made(self, call: Call, asked: dict[str, Any], writer: Writer, outbox: Outbox, meter: Meter) -> None:
        endpoint = self._endpoint
        if not endpoint.configured:
            raise RefusedCallError(503, without_address(endpoint, endpoint.unusable))
        if other := self._worker.busy_with(call.model):
            raise busy(
                f"{endpoint.name} works with one model at a time, now with {other}. Try again when its job has ended."
            )
        make = self._relaying(call, asked, writer, outbox) or self._mapping(call, asked, writer, outbox)
        async with self._slot(call):
            await meter.begin()
            response = await make()
        await meter.end(Call.OUTCOME_ANSWERED, 200, response)

    @asynccontextmanager
    async def _slot(self, call: Call) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_MOST_WAIT_S):
                    await stack.enter_async_context(self._worker.slot(call.owner, call.model))
            except TimeoutError:
                raise busy(f"All slots of {self._endpoint.name} are taken. Try again in a moment.") from None
            yield

    async def _refuse(self, refusal: RefusedCallError, writer: Writer, outbox: Outbox, meter: Meter) -> None:
        outcome = Call.OUTCOME_REFUSED if refusal.status < 500 and refusal.status != 429 else Call.OUTCOME_FAILED
        if outbox.started:
            await outbox.write(writer.failure(refusal))
        else:
            outbox.begin(refusal.status, refusal.headers)
            await outbox.write(json.dumps(refusal.body, ensure_ascii=False).encode("utf-8", "replace"))
        await meter.end(outcome, refusal.status, error=refusal.message)

    # -- as it was written ---------------------------------------------------------------------------------------

    def _relaying(self, call: Call, asked: dict[str, Any], writer: Writer, outbox: Outbox) -> Make | None:
        """None where the endpoint does not speak the API that the call is for."""
        provider, endpoint = self._worker.provider, self._endpoint
        is_chat = call.api == Call.API_CHAT
        if not isinstance(provider, RelayingProvider):
            return None
        if is_chat and endpoint.kind == "grok" and endpoint.api != "chat":
            return None
        if not is_chat and not self._has_responses:
            return None
        chat = grok_wire.CHAT if endpoint.kind == "grok" else wire.CHAT
        chosen = chat if is_chat else grok_wire.RESPONSES
        return lambda: self._relay(provider, chosen, call, asked, writer, outbox)

    async def _relay(
        self,
        provider: RelayingProvider,
        chosen: Wire,
        call: Call,
        asked: dict[str, Any],
        writer: Writer,
        outbox: Outbox,
    ) -> Response | None:
        shown = call.model if self._endpoint.kind == _MADE_HERE else ""
        stream = RelayedStream(outbox, asked, shown)
        heard = stream.heard if call.stream else None
        relayed = await provider.relay(Relay(chosen, call.model, stream.body, heard))
        reply = relayed.reply
        if reply.status in (404, 405) and call.api == Call.API_RESPONSES and not errors.is_model_missing(reply):
            self._has_responses = False
            return await self._mapping(call, asked, writer, outbox)()
        if reply.status != 200:
            raise of_reply(self._endpoint, reply, call.model, chosen.path, asked)
        if relayed.response is None and (call.stream or not _is_answer(reply.body)):
            words = without_address(self._endpoint, reply.error_text)
            said = f": {words}" if words else ""
            raise RefusedCallError(502, f"{self._endpoint.name} failed while answering{said}. Send the request again.")
        if outbox.started:
            await stream.end()
        elif call.stream and relayed.response is not None:  # It does not stream.
            await Streamed(writer, outbox).end(relayed.response)
        else:
            outbox.begin(200, _JSON)
            await outbox.write(_encode(reply.body | ({"model": shown} if shown else {})))
        return relayed.response

    # -- in another form -----------------------------------------------------------------------------------------

    def _mapping(self, call: Call, asked: Mapping[str, Any], writer: Writer, outbox: Outbox) -> Make:
        """Raises RefusedCallError, and ProviderError, for what the endpoint cannot be asked."""
        endpoint = self._endpoint
        body = asked if call.api == Call.API_CHAT else responses_form.as_chat(asked)
        found = chat_form.read(body, endpoint.kind)
        fields = further_fields.fields(found.sampling)
        takes = capabilities(endpoint, call.model)
        check_content(endpoint.kind, endpoint, call.model, takes, found.item.messages, fields)
        stream = Streamed(writer, outbox)
        request = Request(
            call.model,
            found.sampling,
            _NO_ROWS,
            found.item,
            stream=call.stream,
            repeats=2,  # Otherwise an absent temperature is sent as 0, which is right for items alone.
            heard=stream.heard if call.stream else None,
        )
        return lambda: self._ask(request, writer, outbox, stream)

    async def _ask(self, request: Request, writer: Writer, outbox: Outbox, stream: Streamed) -> Response:
        response = await self._worker.provider.generate(request)
        if response.input_truncated and not response.text:
            message = f"The messages are longer than the context of {request.model}. Shorten them."
            raise RefusedCallError(400, message, "messages", code="context_length_exceeded")
        if request.stream:
            await stream.end(response)
        else:
            outbox.begin(200, _JSON)
            await outbox.write(_encode(writer.whole(response)))
        return response


def _writer(call: Call, asked: Mapping[str, Any]) -> Writer:
    number = call.call_id.replace("-", "")
    if call.api == Call.API_RESPONSES:
        return responses_form.Written(number, call.model, call.started_at.seconds, asked)
    options = asked.get("stream_options")
    with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    return chat_form.Completion(number, call.model, call.started_at.seconds, with_usage)


def _is_answer(body: Any) -> bool:
    return isinstance(body, dict) and not body.get("error")


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
