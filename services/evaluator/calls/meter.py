"""What a call took, stored before it begins and again when it has ended: a call of a lost evaluator is not lost. Of a
recorded call also what was asked and answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from services.bus import Bus
from services.chat_requests import messages, sampling
from services.chat_requests.faults import WrongRowError
from services.chat_requests.strict_json import dump
from services.errors import InvalidRequestError, TouchstoneError
from services.evaluator.calls import responses_form
from services.evaluator.calls.chat_form import UNSENT
from services.evaluator.calls.refusals import RefusedCallError, named, wrong
from services.evaluator.datasets import rows
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.planning.budget import MostCost, dollars
from services.evaluator.stored.responses import BudgetStore
from services.evaluator.storing import TRANSIENT, until_stored
from services.words import refusals
from services.words.jobs import BUDGET_HEADER, MOST_AT_ONCE, RUN_HEADER
from touchstone.v1.call_pb2 import Call, CallText, RecordedCall
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.endpoint_pb2 import Endpoint as PublicEndpoint
from touchstone.v1.endpoint_pb2 import Prices
from touchstone.v1.job_pb2 import JobSpec
from touchstone.v1.results_service_pb2 import AdmitCallResponse

_BEGIN_S = 5.0
_MODEL_KNOWN_S = 60.0
"""A run may be closed, and another one opened under its name."""
_MOST_NOTED = 10_000
_MOST_ERROR = 1000
_TEXT_BYTES = 512 * 1024
"""Of a message on USAGE."""
_OVER_BUDGET = "budget_exceeded"
_REQUEST_BYTES = 2_000_000
"""Less than a line of an upload may have."""


class RunModels:
    """Models that recorded runs had a moment ago, so that the results service is not asked at each of their calls."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str], float] = {}

    def is_new(self, call: Call) -> bool:
        noted = self._noted.get((call.owner, call.run, call.model))
        return noted is None or noted < time.monotonic() - _MODEL_KNOWN_S

    def note(self, call: Call) -> None:
        if len(self._noted) >= _MOST_NOTED:
            self._noted.clear()
        self._noted[call.owner, call.run, call.model] = time.monotonic()


class Meter:
    """Of one call."""

    def __init__(
        self, bus: Bus, call: Call, evaluator: str, budgets: BudgetStore | None, models: RunModels | None = None
    ) -> None:
        self._bus = bus
        self._call = call
        self._budgets = budgets
        self._models = models or RunModels()
        self._most_usd = 0.0
        self._call.evaluator = evaluator
        self._call.started_at.GetCurrentTime()
        self._began = time.monotonic()
        self._recorded: RecordedCall | None = None
        self._response: Response | None = None

    def record(self, request: str) -> None:
        """Makes `end` store this request with its answer."""
        self._recorded = RecordedCall(request=request)

    def reserve(self, most_usd: float) -> None:
        """Makes `begin` reserve this from the budget of the call's run."""
        self._most_usd = most_usd

    def costs_nothing(self) -> None:
        """Returns what is reserved."""
        self._call.reserved_usd = 0.0

    async def begin(self) -> None:
        """Returns once it is stored that the call begins. Raises RefusedCallError while that is not possible, and for a
        call that its budget does not allow."""
        self._call.started_at.GetCurrentTime()
        self._began = time.monotonic()
        self._call.reserved_usd = self._most_usd
        try:
            async with asyncio.timeout(_BEGIN_S):
                position = await self._bus.publish_usage(self._call)
        except TRANSIENT as error:
            raise RefusedCallError(
                503, "What the call takes cannot be stored now, so it is not made. Try again in a moment."
            ) from error
        if self._call.budget_usd:
            await self._admitted(position)
        elif self._recorded is not None and self._budgets is not None and self._models.is_new(self._call):
            # While the store is away, the call is made: the limit only saves calls of a run that cannot be closed.
            with suppress(TouchstoneError):
                self._require_room(await self._budgets.admits(self._call.call_id, position))
                self._models.note(self._call)

    async def _admitted(self, position: int) -> None:
        call, admitted = self._call, False
        try:
            if self._budgets is None:
                raise RefusedCallError(
                    503,
                    "The evaluator does not know the address of the results service, which keeps budgets. Set "
                    "TOUCHSTONE_RESULTS where it runs.",
                )
            answer = await self._budgets.admits(call.call_id, position)
            if answer.admitted:
                self._require_room(answer)
            admitted = answer.admitted
        except TouchstoneError as error:
            raise RefusedCallError(
                503, "The budget cannot be checked now, so the call is not made. Try again in a moment."
            ) from error
        finally:
            if not admitted:
                self.costs_nothing()
        if not admitted:
            # A program that continues would fill its run with calls that were never made.
            self._recorded = None
            raise RefusedCallError(
                402,
                f"The call may cost up to {dollars(self._most_usd)}, and of the budget of {dollars(call.budget_usd)} "
                f"for the recorded run {call.run}, {dollars(answer.cost_usd)} is spent or reserved. Raise "
                f"{BUDGET_HEADER}, lower the limit of tokens, or close the run.",
                BUDGET_HEADER,
                kind=_OVER_BUDGET,
                code=_OVER_BUDGET,
            )

    def _require_room(self, answer: AdmitCallResponse) -> None:
        """Raises RefusedCallError for a model that is one too many for the call's run, which could not be closed."""
        if answer.other_models < MOST_AT_ONCE:
            return
        self._recorded = None
        raise wrong(
            f"The recorded run {self._call.run} has calls of {MOST_AT_ONCE} models already, the most that a run can "
            f"have. Close it, or record the calls of {self._call.model} under another name.",
            RUN_HEADER,
        )

    def took(self, response: Response) -> None:
        """Notes what the answer took, whatever becomes of it on its way to the client."""
        call = self._call
        call.ttft_ms, call.served_model = response.ttft_ms, response.served_model
        call.reasoning_tokens = response.reasoning_tokens
        if response.input_tokens is not None:
            call.input_tokens = response.input_tokens
        if response.output_tokens is not None:
            call.output_tokens = response.output_tokens
        if response.cost_usd is not None:
            call.cost_usd = response.cost_usd
        self._response = response

    async def end(self, outcome: Call.Outcome, status: int, error: str = "") -> None:
        """Returns once it is stored how the call ended, however long NATS is away."""
        call = self._call
        call.outcome, call.status, call.error = outcome, status, error[:_MOST_ERROR]
        call.latency_ms = (time.monotonic() - self._began) * 1000
        if self._recorded is not None:
            if outcome == Call.OUTCOME_ANSWERED:
                _keep(self._recorded, self._response)
            call.texts = await self._store_texts(self._recorded.SerializeToString())
        await until_stored(lambda: self._bus.publish_usage(call), "what a call took")

    async def _store_texts(self, data: bytes) -> int:
        """Returns the number of parts."""
        parts = [data[start : start + _TEXT_BYTES] for start in range(0, len(data), _TEXT_BYTES)]
        for number, part in enumerate(parts):
            text = CallText(call_id=self._call.call_id, part=number, data=part)
            await until_stored(partial(self._bus.publish_call_text, self._call, text), "what a call said")
        return len(parts)


def _keep(recorded: RecordedCall, response: Response | None) -> None:
    if response is None:
        recorded.error = "The answer is not in the form of OpenAI's API, so its text is not known."
        return
    recorded.response, recorded.reasoning = _text(response.text), _text(response.reasoning)
    recorded.finish_reason = _text("content_filter" if response.refused else response.finish_reason)
    recorded.tool_calls.extend(response.tool_calls)


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def as_row(call: Call, asked: Mapping[str, Any]) -> tuple[str, DatasetRow]:
    """A request as the body of a chat completion, as JSON, and as a row of a dataset. Raises RefusedCallError for one
    that no row can have."""
    if asked.get("web_search_options") is not None:
        # An empty object, which a row may have, makes the provider search.
        name = "web_search_options"
        raise wrong(f"The call cannot be recorded: the provider would search the web. Leave {name} out.", name)
    body = asked if call.api == Call.API_CHAT else responses_form.as_chat(asked)
    fields = {name: value for name, value in body.items() if name not in UNSENT and value is not None}
    row = DatasetRow()
    try:
        messages.converse(row, body.get("messages"))
        sampling.ask_for(row, fields)
        line = dump({"messages": body["messages"], **fields})
        size = len(line.encode())
    except WrongRowError as error:
        raise wrong(f"The call cannot be recorded: {error.reason}", named(error.reason, fields)) from None
    except ValueError:
        raise wrong("The call cannot be recorded: its body has a text or a number that is not valid JSON.") from None
    if max(size, row.ByteSize()) > _REQUEST_BYTES:
        raise wrong(f"{refusals.too_large('A recorded call', size, _REQUEST_BYTES, 'bytes')} Send fewer messages.")
    return line, row


def most_usd(endpoint: Endpoint, call: Call, asked: Mapping[str, Any], row: DatasetRow, known: Prices | None) -> float:
    """The most that a call may cost. Raises RefusedCallError if nothing bounds it."""
    if (tier := asked.get("service_tier")) not in (None, "default"):
        raise wrong(
            f"With service_tier {tier!r}, the cost of an answer has no known limit. Leave it out, or leave "
            f"{BUDGET_HEADER} out.",
            "service_tier",
        )
    spec = JobSpec(endpoint=endpoint.name, model=call.model)
    limit = "max_output_tokens" if "input" in asked else "max_completion_tokens"
    item = rows.item(0, row, (), None)
    try:
        return MostCost(spec, PublicEndpoint(kind=endpoint.kind), known).written(item.messages, row.sampling)
    except InvalidRequestError as error:
        if error.field == "sampling.max_tokens":
            raise wrong(
                f"A budget needs {limit}, which limits the cost of an answer. Set it, with room for reasoning.", limit
            ) from None
        message = error.message.replace("budget_usd", BUDGET_HEADER)
        raise wrong(message, named(message, asked) or BUDGET_HEADER) from None
