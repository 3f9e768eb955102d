"""What can be run and what waits: endpoints, models, suites and the queue, remembered for seconds. Where a model is
reached that a user names.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from services import rpc
from services.errors import InvalidRequestError, NotFoundError, TouchstoneError
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.words import plugins
from services.words.jobs import is_finished
from services.words.scorers import SCORERS
from services.words.suites import suite_order, unknown_suite
from touchstone.v1 import (
    endpoint_pb2,
    evaluator_pb2,
    job_pb2,
    queue_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_pb2,
)

T = TypeVar("T")


class Remembered(Generic[T]):
    """A value that is asked for again after `ttl_s`; requests at the same time share one answer. It is given for
    `late_s` more, while it is asked for again."""

    def __init__(self, ask: Callable[[], Awaitable[T]], ttl_s: float, late_s: float = 0) -> None:
        self._ask = ask
        self._ttl_s = ttl_s
        self._late_s = late_s
        self._lock = asyncio.Lock()
        self._held: tuple[float, T] | None = None
        self._failed: tuple[float, TouchstoneError] | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def get(self) -> T:
        """Raises what asking raises; a failure is remembered for a second."""
        if self._held and 0 <= time.monotonic() - self._held[0] - self._ttl_s < self._late_s:
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
            return self._held[1]
        return await self._renewed()

    async def _renew(self) -> None:
        with contextlib.suppress(TouchstoneError):
            await self._renewed()

    async def _renewed(self) -> T:
        async with self._lock:
            now = time.monotonic()
            if self._held and now - self._held[0] < self._ttl_s:
                return self._held[1]
            if self._failed and now - self._failed[0] < 1:
                raise self._failed[1]
            try:
                value = await self._ask()
            except TouchstoneError as error:
                self._failed = (time.monotonic(), error)
                raise
            # An empty list occurs at the start: if remembered, it would refuse jobs after the evaluator has appeared.
            self._held = (time.monotonic(), value) if value else None
            return value


class Catalogue:
    """Endpoints, models, suites and the queue, asked as an admin: they are the same for everyone."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._caller = rpc.Identity("gateway", rpc.LOCAL.role)
        self._queue = Remembered(self._ask_queue, 0.4)
        self._endpoints = Remembered(self._ask_endpoints, 2)
        self._suites = Remembered(self._ask_suites, 5)
        self._evaluators = Remembered(self._ask_evaluators, 5)
        self._models: dict[str, Remembered[list[endpoint_pb2.Model]]] = {}
        self._configurations = Remembered(self._ask_configurations, 5, late_s=60)
        self._ran: list[tuple[str, str]] = []

    async def queue(self) -> queue_pb2.Queue:
        return await self._queue.get()

    async def endpoints(self) -> list[endpoint_pb2.Endpoint]:
        """Every endpoint ever announced: those in use by name, then the others, then baselines."""
        return await self._endpoints.get()

    async def suites(self) -> list[suite_pb2.Suite]:
        """Installed suites: the API document's in its order, then the others."""
        return await self._suites.get()

    async def evaluators(self) -> list[evaluator_pb2.Evaluator]:
        """Every evaluator by name, live or not."""
        return await self._evaluators.get()

    def forget_evaluators(self) -> None:
        """The next question about them goes to the service again."""
        self._evaluators = Remembered(self._ask_evaluators, 5)

    async def scorers(self) -> dict[str, str]:
        """The scorers of datasets in words, by name: built-in ones, then those of plug-ins. While the scheduler does
        not answer, built-in ones alone."""
        return {**SCORERS, **plugins.scorers(await self._live())}

    async def left_out(self) -> list[str]:
        """A line for each part of a plug-in that running evaluators leave out, with the reason."""
        return plugins.left_out(await self._live())

    async def _live(self) -> list[evaluator_pb2.Evaluator]:
        try:
            return [one for one in await self.evaluators() if one.live]
        except TouchstoneError:
            return []

    async def models(self, endpoint: str) -> list[endpoint_pb2.Model]:
        """Raises NotFoundError for an endpoint that was never announced."""
        if endpoint not in {known.endpoint for known in await self.endpoints()}:
            raise NotFoundError(f"Endpoint {endpoint!r} not found.")
        held = self._models.setdefault(endpoint, Remembered(lambda: self._ask_models(endpoint), 3))
        return await held.get()

    async def listed_keys(self) -> list[tuple[str, str]]:
        """(endpoint, model) of every model that an endpoint lists, except baselines."""
        endpoints = [known.endpoint for known in await self.endpoints() if not known.baseline]
        lists = await asyncio.gather(*(self.models(endpoint) for endpoint in endpoints))
        return [(endpoint, m.model) for endpoint, models in zip(endpoints, lists, strict=True) for m in models]

    async def model_keys(self) -> list[tuple[str, str]]:
        """(endpoint, model) of every model except baselines, in the order in which they are given colours: those with a
        complete run, then those that run or wait, then those that are only listed."""
        floors = {known.endpoint for known in await self.endpoints() if known.baseline}
        listed, queue = await asyncio.gather(self.listed_keys(), self.queue())
        with contextlib.suppress(TouchstoneError):
            self._ran = await self._configurations.get()
        live = [(job.spec.endpoint, job.spec.model) for job in (*queue.running, *queue.scoring, *queue.pending)]
        keys = dict.fromkeys([*sorted(self._ran), *sorted(live), *sorted(listed)])
        return [key for key in keys if key[0] not in floors]

    async def suite(self, name: str) -> suite_pb2.Suite:
        """The suite of this name; of "<suite>:<task>" the open suite. Raises InvalidRequestError, which lists what is
        installed."""
        suites = await self.suites()
        before, colon, _ = name.partition(":")
        for suite in suites:
            if suite.suite == before and (suite.open or not colon):
                return suite
        raise unknown_suite(suite.suite for suite in suites)

    async def endpoint(self, provider: str, field: str = "config.provider") -> endpoint_pb2.Endpoint:
        """The endpoint of this name, else the only one of this kind. Raises InvalidRequestError naming the choices."""
        endpoints = await self.endpoints()
        for known in endpoints:
            if known.endpoint == provider:
                return known
        of_kind = [known for known in endpoints if known.kind == provider]
        if len(of_kind) == 1:
            return of_kind[0]
        if of_kind:
            names = ", ".join(known.endpoint for known in of_kind)
            raise InvalidRequestError(
                f"Several endpoints are of kind {provider}: {names}. Name one of them as provider.", field
            )
        names = ", ".join(known.endpoint for known in endpoints) or "none yet; start an evaluator"
        raise InvalidRequestError(f"Unknown provider {provider!r}. Endpoints here: {names}.", field)

    async def require_endpoint(self, name: str) -> None:
        """Raises InvalidRequestError for a name that no endpoint ever had; while none is known, any may be."""
        known = [endpoint.endpoint for endpoint in await self.endpoints()]
        if known and name not in known:
            raise InvalidRequestError(
                f"Unknown endpoint {name[:80]!r}. Endpoints here: {', '.join(known)}.", "endpoint"
            )

    async def trouble(self, job: job_pb2.Job) -> str:
        """Why an unfinished job's endpoint does not answer now, in its own words; empty if no reason is known."""
        if is_finished(job):
            return ""
        try:
            endpoints = await self.endpoints()
        except TouchstoneError:
            return ""
        known = next((endpoint for endpoint in endpoints if endpoint.endpoint == job.spec.endpoint), None)
        if known is None or known.state == endpoint_pb2.Endpoint.STATE_REACHABLE:
            return ""
        # A limit is of the endpoint, or of models that it names.
        of_models = known.state == endpoint_pb2.Endpoint.STATE_LIMITED and ": " in known.detail
        return "" if of_models and f"{job.spec.model}: " not in known.detail else known.detail

    async def require_suite(self, name: str) -> None:
        """Raises InvalidRequestError for a suite that is not installed; while the installed suites are unknown, any may
        be. A dataset's id is not checked."""
        if jobs.is_dataset(name):
            return
        try:
            known = await self.suites()
        except TouchstoneError:
            return
        if name and known:
            await self.suite(name)

    async def _ask_queue(self) -> queue_pb2.Queue:
        request = scheduler_service_pb2.GetQueueRequest()
        return (await self._backend.ask(self._backend.scheduler.GetQueue, request, self._caller)).queue

    async def _ask_endpoints(self) -> list[endpoint_pb2.Endpoint]:
        request = scheduler_service_pb2.ListEndpointsRequest(page_size=500)
        answer = await self._backend.ask(self._backend.scheduler.ListEndpoints, request, self._caller)
        unusable = (endpoint_pb2.Endpoint.STATE_NOT_CONFIGURED, endpoint_pb2.Endpoint.STATE_ABSENT)
        return sorted(answer.endpoints, key=lambda known: (known.baseline, known.state in unusable, known.endpoint))

    async def _ask_suites(self) -> list[suite_pb2.Suite]:
        request = scheduler_service_pb2.ListSuitesRequest(page_size=500)
        answer = await self._backend.ask(self._backend.scheduler.ListSuites, request, self._caller)
        return sorted(answer.suites, key=lambda known: suite_order(known.suite))

    async def _ask_evaluators(self) -> list[evaluator_pb2.Evaluator]:
        request = scheduler_service_pb2.ListEvaluatorsRequest(page_size=500)
        found: list[evaluator_pb2.Evaluator] = []
        while True:
            answer = await self._backend.ask(self._backend.scheduler.ListEvaluators, request, self._caller)
            found += answer.evaluators
            request.page_token = answer.next_page_token
            if not answer.next_page_token:
                return found

    async def _ask_configurations(self) -> list[tuple[str, str]]:
        request = results_service_pb2.ListConfigurationsRequest(page_size=500)
        answer = await self._backend.ask(self._backend.results.ListConfigurations, request, self._caller)
        return [(one.endpoint, one.model) for one in answer.configurations]

    async def _ask_models(self, endpoint: str) -> list[endpoint_pb2.Model]:
        request = scheduler_service_pb2.ListModelsRequest(endpoint=endpoint, page_size=1000)
        answer = await self._backend.ask(self._backend.scheduler.ListModels, request, self._caller)
        return list(answer.models)


MODEL_FIELD = "model_id"


async def place_of(catalogue: Catalogue, model_id: str, provider: str = "") -> tuple[str, str]:
    """(endpoint, model) of `model` or `model@endpoint`. Without a provider, the only endpoint that lists the model.

    Raises NotFoundError for a model that no endpoint lists, and InvalidRequestError for an unknown provider, or if
    several endpoints have the model, naming them.
    """
    model_id = model_id.strip()
    if provider:
        return await _at(catalogue, provider, model_id)
    endpoints = await catalogue.endpoints()
    model, _, after = model_id.rpartition("@")
    if model and any(after in (known.endpoint, known.kind) for known in endpoints):
        return await _at(catalogue, after, model)
    names = [known.endpoint for known in endpoints]
    lists = dict(zip(names, await asyncio.gather(*(catalogue.models(name) for name in names)), strict=True))
    found = [name for name, listed in lists.items() if _has(listed, model_id)]
    if len(found) > 1:
        raise InvalidRequestError(
            f"Several endpoints have model {model_id!r}: {', '.join(found)}. Name one of them as provider, or write "
            f"{model_id}@{found[0]}.",
            MODEL_FIELD,
        )
    if not found:
        listed = [model.model for models in lists.values() for model in models]
        raise NotFoundError(f"Model {model_id[:200]!r} not found at any endpoint. {_near(model_id, listed)}".rstrip())
    return found[0], model_id


async def _at(catalogue: Catalogue, provider: str, model: str) -> tuple[str, str]:
    endpoint = await catalogue.endpoint(provider, "provider")
    listed = await catalogue.models(endpoint.endpoint)
    # An endpoint that has not listed its models is not checked here, but when the run is planned.
    if listed and not _has(listed, model):
        near = _near(model, [known.model for known in listed])
        raise NotFoundError(f"Model {model[:200]!r} not found at {endpoint.endpoint}. {near}".rstrip())
    return endpoint.endpoint, model


def _has(listed: Iterable[endpoint_pb2.Model], model: str) -> bool:
    """Ollama takes a name without a tag for its `latest`."""
    return any(known.model in (model, f"{model}:latest") for known in listed)


def _near(model: str, listed: list[str]) -> str:
    near = difflib.get_close_matches(model, [*dict.fromkeys(listed)], n=3, cutoff=0.5)
    return f"Did you mean {', '.join(near)}?" if near else ""
