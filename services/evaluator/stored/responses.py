"""Stored answers: where they come from, and for which of a unit's items they save a call.

The items in the results service are the store; there is no second one. An evaluator queries it in three cases: when a
unit was begun before (its job's own answers are not paid twice), when the job takes another job's answers, and when it
takes answers to equal requests from any job.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import grpc

from services import rpc
from services.bus import heed_cancel, of_job
from services.errors import DeadlineError, TouchstoneError, UnavailableError
from services.evaluator import item_result
from services.evaluator.items.task import Item
from services.evaluator.listing.identity import Identity, setup
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.capabilities import capabilities
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.units.unit_loader import Loaded
from services.evaluator.units.units_in_hand import FaultError, Held
from services.words.endpoints import named
from services.words.jobs import takes_stored
from touchstone.v1 import job_pb2, results_internal_service_pb2_grpc, unit_pb2
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.results_service_pb2 import (
    AdmitCallRequest,
    AdmitCallResponse,
    FindResponsesRequest,
    FindResponsesResponse,
)

log = logging.getLogger(__name__)

T = TypeVar("T", int, str)

_ASK_S = 5.0
_GLANCE_S = 2.0
"""A job whose calls cost nothing does not wait longer for answers that it could also request again."""
_PAUSE_S = 1.0
_MOST_ASKED = 1000
_LONG_BYTES = 1024 * 1024
"""A reply above this size may lack some stored answers: the service fills one message, and one result may take 400
KB."""


class ResponseStore(Protocol):
    """Final item results without their prompts; missing ones are left out.

    Raises UnavailableError or DeadlineError while the store does not answer.
    """

    async def of_job(self, job_id: str, task: str, positions: Sequence[int], reached: int = 0) -> list[ItemResult]:
        """Those of RESULTS up to its position `reached` are among them."""
        ...

    async def by_identity(self, identities: Sequence[str], owner: str) -> list[ItemResult]:
        """The newest of several with one identity; where reads are closed, only among the owner's."""
        ...


class BudgetStore(Protocol):
    """Budgets of recorded runs."""

    async def admits(self, call_id: str, position: int) -> AdmitCallResponse:
        """Whether the budget of its run allows a call that has begun at a position of USAGE. Raises TouchstoneError
        while the store does not answer."""
        ...


class ResultsStore:
    """The results service over gRPC."""

    def __init__(self, channel: grpc.aio.Channel, service_token: str) -> None:
        self._stub = results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel)
        self._metadata = rpc.metadata(service_token)

    async def of_job(self, job_id: str, task: str, positions: Sequence[int], reached: int = 0) -> list[ItemResult]:
        def request(left: Sequence[int]) -> FindResponsesRequest:
            return FindResponsesRequest(job_id=job_id, task=task, positions=left, results_sequence=reached)

        return await self._all(positions, request, lambda found: found.position)

    async def by_identity(self, identities: Sequence[str], owner: str) -> list[ItemResult]:
        def request(left: Sequence[str]) -> FindResponsesRequest:
            return FindResponsesRequest(identities=left, owner=owner)

        return await self._all(identities, request, lambda found: found.identity)

    async def admits(self, call_id: str, position: int) -> AdmitCallResponse:
        request = AdmitCallRequest(call_id=call_id, usage_sequence=position)
        try:
            return await self._stub.AdmitCall(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error

    async def _all(
        self,
        wanted: Sequence[T],
        request: Callable[[Sequence[T]], FindResponsesRequest],
        key: Callable[[ItemResult], T],
    ) -> list[ItemResult]:
        """Asks for as many at a time as one request may name, and again for the rest if a reply was cut to one
        message."""
        found: list[ItemResult] = []
        for start in range(0, len(wanted), _MOST_ASKED):
            left = list(wanted[start : start + _MOST_ASKED])
            while left:
                answer = await self._find(request(left))
                found += answer.results
                here = {key(one) for one in answer.results}
                left = [one for one in left if one not in here] if answer.ByteSize() > _LONG_BYTES else []
        return found

    async def _find(self, request: FindResponsesRequest) -> FindResponsesResponse:
        try:
            return await self._stub.FindResponses(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error


@dataclass(slots=True)
class Known:
    """A unit's results that need no call, by position; `unusable` says why a stored answer cannot be used. `told` are
    the positions of results that an earlier delivery has published."""

    results: dict[int, ItemResult] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    unusable: dict[int, str] = field(default_factory=dict)


Identify = Callable[[Item, int], str]
"""The identity of the item's answer with number `repeat`."""

Newest = Callable[[unit_pb2.Unit], Awaitable[int]]
"""The position on RESULTS of the newest message about a unit; 0 if there is none."""


class KnownAnswers:
    """Looks in the store, which is `None` if this evaluator has none. `listings` give what the endpoints' models
    support. `newest` says up to where the store must have read RESULTS."""

    def __init__(self, store: ResponseStore | None, listings: Mapping[str, EndpointListing], newest: Newest) -> None:
        self._store = store
        self._listings = listings
        self._newest = newest

    def identity(self, unit: unit_pb2.Unit) -> Identity:
        """Gives the unit's answers their identities.

        Raises FaultError for a parameter that the model refuses, and when the model's name now means other weights than
        planned: the score would mix two models, and answers would be reused under the wrong weights.
        """
        spec, listing = unit.spec, self._listings[unit.spec.endpoint]
        listed = named(listing.models, spec.model)
        if listed is not None and unit.model_digest and listed.digest not in ("", unit.model_digest):
            raise FaultError(
                f"The weights of {spec.model} at {spec.endpoint} have changed since the job was planned "
                f"({listed.digest[:19]}, not {unit.model_digest[:19]}). Start a new job."
            )
        found = capabilities(listing.endpoint, spec.model, listed.capabilities if listed is not None else None)
        try:
            return Identity(spec, unit.model_digest, listing.endpoint.kind, found, setup(listing.endpoint, spec.model))
        except ProviderError as error:
            raise FaultError(error.message) from error

    async def of(self, held: Held, loaded: Loaded, identify: Identify) -> Known:
        """Waits for a store that does not answer if the job takes stored answers, or asking again would be paid again;
        any other job continues without it.

        Raises FaultError when a job needs a store and there is none, or when it refuses.
        """
        unit = held.unit
        known = Known()
        if held.delivery > 1 or unit.begun:
            known.results.update(await self._own(unit, loaded))
            known.told.update(known.results)
        if unit.spec.reuse.job_id:
            await self._of_source(unit.spec.reuse, unit.task, loaded, known)
        elif takes_stored(unit.spec.reuse, unit.model_digest):
            await self._of_any(unit.owner, loaded, identify, known)
        return known

    async def _own(self, unit: unit_pb2.Unit, loaded: Loaded) -> dict[int, ItemResult]:
        """Results that an earlier delivery has stored. They are published again unchanged, so that the scheduler counts
        them."""
        if self._store is None and not _takes(unit):
            return {}
        items = {position: item for position, _, item in loaded.items}
        reached = await self._newest(unit)

        def ask(store: ResponseStore) -> Awaitable[list[ItemResult]]:
            return store.of_job(unit.job_id, unit.task, list(items), reached)

        # A job that takes answers would otherwise find its own ones among others', and count them as reused.
        found = list(await (self._patiently(ask) if _takes(unit) else self._unless_silent(unit, ask)))
        for stored in found:
            item_result.with_prompt(stored, items[stored.position])
        return {stored.position: stored for stored in found}

    async def _unless_silent(
        self, unit: unit_pb2.Unit, ask: Callable[[ResponseStore], Awaitable[list[ItemResult]]]
    ) -> list[ItemResult]:
        """Nothing if the store refuses, or if asking the model again costs nothing and the store is silent."""
        assert self._store is not None
        is_paid = _is_paid(unit)
        while True:
            heed_cancel()
            try:
                async with asyncio.timeout(None if is_paid else _GLANCE_S):
                    return await ask(self._store)
            except (TouchstoneError, TimeoutError) as error:
                is_silent = isinstance(error, UnavailableError | DeadlineError) or type(error) is TouchstoneError
                waits = is_paid and is_silent
                log.warning(
                    "job %s: %s: the store of answers does not answer (%s)",
                    unit.job_id,
                    "waiting for stored answers" if waits else "asking the model again",
                    error,
                    extra=of_job(unit.job_id),
                )
                if not waits:
                    return []
            await asyncio.sleep(_PAUSE_S)

    async def _of_source(self, reuse: job_pb2.Reuse, task: str, loaded: Loaded, known: Known) -> None:
        left = {place: (repeat, item) for place, repeat, item in loaded.items if place not in known.results}
        for stored in await self._patiently(lambda store: store.of_job(reuse.job_id, task, list(left))):
            repeat, item = left[stored.position]
            if stored.outcome in reuse.rerun:
                continue
            if not item_result.is_whole(stored):
                known.unusable[stored.position] = "Its stored answer was truncated, so it cannot be scored."
            elif (stored.item_hash, stored.prompt_hash) != (item.hash, item.prompt_hash):
                known.unusable[stored.position] = (
                    "Its stored answer belongs to a different prompt, so it cannot be scored."
                )
            else:
                reused = partial(item_result.reused, loaded.task, item, stored.position, repeat, stored)
                known.results[stored.position] = await item_result.called(loaded.task, reused)

    async def _of_any(self, owner: str, loaded: Loaded, identify: Identify, known: Known) -> None:
        places: defaultdict[str, list[tuple[int, int, Item]]] = defaultdict(list)
        for place, repeat, item in loaded.items:
            if place not in known.results:
                places[identify(item, repeat)].append((place, repeat, item))
        for stored in await self._patiently(lambda store: store.by_identity(list(places), owner)):
            if item_result.is_whole(stored):
                for place, repeat, item in places[stored.identity]:
                    reused = partial(item_result.reused, loaded.task, item, place, repeat, stored)
                    known.results[place] = await item_result.called(loaded.task, reused)

    async def _patiently(self, ask: Callable[[ResponseStore], Awaitable[Iterable[ItemResult]]]) -> Iterable[ItemResult]:
        if self._store is None:
            raise FaultError(
                "The job uses stored answers, but its evaluator does not know the address of the results service. "
                "Set TOUCHSTONE_RESULTS where the evaluator runs."
            )
        while True:
            heed_cancel()
            try:
                return await ask(self._store)
            except (UnavailableError, DeadlineError) as error:
                log.warning("waiting for stored answers: %s", error.message)
                await asyncio.sleep(_PAUSE_S)
            except TouchstoneError as error:
                raise FaultError(f"The results service cannot return stored answers: {error.message}") from error


def _takes(unit: unit_pb2.Unit) -> bool:
    """Whether the job takes stored answers of other jobs or of an import."""
    reuse = unit.spec.reuse
    return bool(reuse.job_id or reuse.any_job or reuse.import_id)


def _is_paid(unit: unit_pb2.Unit) -> bool:
    """Whether the job's calls cost money, or it is a judge's."""
    known = prices.of_unit(unit)
    return bool(unit.spec.judging.job_id) or (known is not None and known.input + known.output > 0)
