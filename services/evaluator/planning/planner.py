"""Answers planning units: a job's plan, and what its scores will rest on. It has its own slot."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from nats.aio.msg import Msg

import services
from services import further_fields, numbers
from services.bus import EVALUATORS, PLAN_ENDPOINT, Bus, of_job
from services.errors import InvalidRequestError, NotFoundError, TouchstoneError
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.endpoints.batch_options import BatchOptions
from services.evaluator.imports.store import ImportStore
from services.evaluator.items.task import Message
from services.evaluator.listing.identity import asked_with
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.make_provider import check_content
from services.evaluator.planning import datasets, imports
from services.evaluator.planning.budget import MostCost, reserve_suite
from services.evaluator.planning.datasets import Caller
from services.evaluator.plugins.contract import NotHereError, PluginError
from services.evaluator.provider_batches import planning as batches
from services.evaluator.providers import baseline
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol import capabilities
from services.evaluator.providers.protocol.provider import ProviderError, no_loglikelihood
from services.evaluator.settings import Settings
from services.evaluator.storing import until_stored
from services.evaluator.units.puller import Puller
from services.evaluator.units.unit_loader import Loader
from services.evaluator.units.units_in_hand import Hand, Held
from services.words import plugins, refusals
from services.words.endpoints import named, no_model
from services.words.enums import proto_name
from services.words.jobs import is_rescore, mode_of, takes_stored
from services.words.refusals import counted
from services.words.watches import canary_rows
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, suite_pb2, unit_pb2

log = logging.getLogger(__name__)

_UNIT_S = 0.4


def unit_size(usual: int, endpoint: endpoint_pb2.Endpoint) -> int:
    """Items per unit.

    Twice the usual size if that many calls run at a time: a crash repeats them in any case, and every unit has a cost.
    Where calls are limited it is a fraction of a second of the limit: with larger ones, one user's units in hand would
    keep the others waiting for long.
    """
    size = max(usual, min(2 * usual, endpoint.concurrency))
    limit = endpoint.requests_per_minute
    return max(1, min(size, int(limit / 60 * _UNIT_S))) if limit else size


class Planner:
    """Plans one job at a time, in a thread, so that a full endpoint or a long download does not delay other units. Jobs
    of plug-ins do not hold up the others."""

    def __init__(
        self,
        bus: Bus,
        hand: Hand,
        catalogue: Catalogue,
        loader: Loader,
        listings: Mapping[str, EndpointListing],
        stored: ImportStore,
        datasets: OpenDatasets,
        settings: Settings,
    ) -> None:
        self._bus = bus
        self._hand = hand
        self._catalogue = catalogue
        self._loader = loader
        self._listings = listings
        self._stored = stored
        self._datasets = datasets
        self._settings = settings
        self._room = asyncio.Event()
        self._room.set()
        self._puller = Puller(bus, PLAN_ENDPOINT, settings.ack_wait_s, self._room)

    async def open(self) -> None:
        await self._puller.open()

    async def run(self) -> None:
        """Runs until cancelled; a plan that has begun is finished."""
        await self._puller.run(self._receive)

    def _receive(self, msg: Msg) -> None:
        if self._hand.take(PLAN_ENDPOINT, msg, self._run, lambda _: self._room.set()) is not None:
            self._room.clear()

    async def _run(self, held: Held) -> None:
        if plugin := await self._missing_plugin(held.unit.spec):
            # The next plan need not wait for this one to go back.
            self._room.set()
            raise NotHereError(f"it needs the plug-in {plugin}, which only other evaluators have")
        held.started = True
        if self._may_take_long(held.unit.spec):
            self._room.set()
        job_id, attempt = held.job
        began = time.monotonic()
        plan = await self.plan(held.unit.spec, prices.of_unit(held.unit))
        _log(job_id, plan, time.monotonic() - began)
        await until_stored(lambda: self._bus.publish_plan(job_id, attempt, plan), f"the plan of job {job_id}")

    async def _missing_plugin(self, spec: job_pb2.JobSpec) -> str:
        """The plug-in of a job whose suite or scorer only other evaluators have; empty for others."""
        what, names = plugins.parts_of(spec)
        of_scorer = what == plugins.SCORER
        if not names or (self._datasets.plugin(spec.dataset) if of_scorer else self._catalogue.has(names[0])):
            return ""
        announced = await until_stored(self._announced, "the announcements")
        return min(plugins.owners(announced, what, names), default="")

    def _may_take_long(self, spec: job_pb2.JobSpec) -> bool:
        """A plug-in's code runs, for which no other job waits."""
        return bool(self._catalogue.plugin(spec.suite.suite) or self._datasets.plugin(spec.dataset))

    async def plan(self, spec: job_pb2.JobSpec, of_job: endpoint_pb2.Prices | None = None) -> unit_pb2.Plan:
        """The plan, or one with `error` set to the sentence that a user reads. `of_job` are the prices of the job's
        first attempt, which a later one keeps."""
        mode = spec.mode or suite_pb2.MODE_GENERATE
        rescore = is_rescore(spec)
        work = spec.WhichOneof("work")
        if work not in ("suite", "dataset"):
            return unit_pb2.Plan(error="This version of Touchstone runs suites and datasets. Name one.")
        if spec.reuse.import_id:
            return await self._plan_import(spec)
        receipt = job_pb2.Receipt(software=services.__version__, source_job=spec.reuse.job_id)
        try:
            size = self._settings.unit_size
            caller: Caller | None = None
            if work == "dataset":
                datasets.check_mode(spec)
            # A re-score does not call a model: the receipt of its source names the one that answered.
            if not rescore:
                endpoint = await self._endpoint(spec.endpoint)
                model = self._model(spec, endpoint)
                receipt.MergeFrom(_asked(spec, endpoint, model))
                known = of_job or self._prices(spec, model)
                if known is not None:
                    receipt.prices.CopyFrom(known)
                size = unit_size(size, endpoint)
                caller = self._caller(spec, endpoint, model, known)
            if work == "dataset":
                task = await self._datasets.open(spec.dataset, Layer.asked(spec.reading))
                if rows := canary_rows(spec):
                    task = task.only(rows[task.info.task])
                tasks = [await datasets.plan(spec, task, size, caller)]
            else:
                suite = spec.suite.suite
                tasks = await self._catalogue.apart(
                    suite,
                    self._catalogue.plan,
                    spec.suite,
                    mode,
                    size,
                    canary_rows(spec),
                    Layer.asked(spec.reading),
                    spec.HasField("deciding"),
                )
                if caller is not None and caller.most_cost is not None:
                    await self._catalogue.apart(suite, reserve_suite, spec, tasks, self._catalogue, caller.most_cost)
        except (ProviderError, InvalidRequestError, PluginError) as error:
            return unit_pb2.Plan(error=error.message)
        except TouchstoneError as error:
            return unit_pb2.Plan(
                error=error.message if work == "dataset" else self._loader.data_error(spec.suite, error)
            )
        if not rescore:
            receipt.configuration = configuration(spec, receipt, tasks)
        return unit_pb2.Plan(tasks=tasks, receipt=receipt)

    async def _plan_import(self, spec: job_pb2.JobSpec) -> unit_pb2.Plan:
        size = self._settings.unit_size
        try:
            if spec.HasField("dataset"):
                task = await self._datasets.open(spec.dataset, Layer.asked(spec.reading))
                tasks, receipt = await imports.plan_rows(spec, self._stored, task, size)
            else:
                tasks, receipt = await imports.plan(spec, self._stored, self._catalogue, size)
        except (InvalidRequestError, NotFoundError, PluginError) as error:
            return unit_pb2.Plan(error=error.message)
        except TouchstoneError as error:
            return unit_pb2.Plan(
                error=error.message if spec.HasField("dataset") else self._loader.data_error(spec.suite, error)
            )
        receipt.configuration = configuration(spec, receipt, tasks)
        return unit_pb2.Plan(tasks=tasks, receipt=receipt)

    def _caller(
        self,
        spec: job_pb2.JobSpec,
        endpoint: endpoint_pb2.Endpoint,
        model: endpoint_pb2.Model,
        known: endpoint_pb2.Prices | None,
    ) -> Caller:
        """Raises InvalidRequestError for a budget that cannot be kept, and ProviderError for a baseline that cannot
        answer and for what the job's further fields ask of a provider that has no form for it."""
        is_baseline = endpoint.kind == "baseline"
        listing = self._listings.get(spec.endpoint)
        batch: BatchOptions | None = None
        if spec.provider_batch:
            batches.check(spec, endpoint.kind)
            batch = listing.endpoint.batch if listing is not None else BatchOptions.usual(endpoint.kind)
        if is_baseline:
            baseline.check(spec.model, of_rows=spec.WhichOneof("work") == "dataset")
        known_endpoint = listing.endpoint if listing is not None else None

        def check(messages: Sequence[Message], fields: Mapping[str, Any]) -> None:
            check_content(endpoint.kind, known_endpoint, spec.model, model.capabilities, messages, fields)

        check((), further_fields.fields(spec.sampling))
        return Caller(
            lambda sampling: asked_with(spec, endpoint.kind, model.capabilities, sampling=sampling),
            MostCost(spec, endpoint, known) if spec.budget_usd > 0 else None,
            spec.model if is_baseline else "",
            batch,
            check,
        )

    def _prices(self, spec: job_pb2.JobSpec, model: endpoint_pb2.Model) -> endpoint_pb2.Prices | None:
        """The model's prices from the endpoints file, even while the endpoint cannot be listed; or from the
        announcement of an evaluator that serves it."""
        listing = self._listings.get(spec.endpoint)
        return prices.of_listed(model) if listing is None else prices.of(listing.endpoint, spec.model, model)

    async def _endpoint(self, name: str) -> endpoint_pb2.Endpoint:
        """The endpoint as this evaluator knows it, or as one that serves it has announced it: the receipt must not
        depend on the planning evaluator. Without models if no evaluator has listed them yet."""
        listing = self._listings.get(name)
        if listing is not None:
            return listing.announcement(slots_busy=0)
        announced = await until_stored(self._announced, "the announcements")
        found = [e for evaluator in announced for e in evaluator.endpoints if e.endpoint == name]
        return max(found, key=lambda e: e.refreshed_at.ToNanoseconds(), default=endpoint_pb2.Endpoint(endpoint=name))

    async def _announced(self) -> list[evaluator_pb2.Evaluator]:
        return [evaluator_pb2.Evaluator.FromString(msg.data) async for _, msg in self._bus.kv_all(EVALUATORS)]

    def _model(self, spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint) -> endpoint_pb2.Model:
        """Raises InvalidRequestError or ProviderError."""
        listing = self._listings.get(spec.endpoint)
        if listing is not None and not listing.endpoint.configured:
            raise ProviderError(listing.endpoint.unusable, fatal=True)
        return listed_model(spec, endpoint)


def listed_model(spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint) -> endpoint_pb2.Model:
    """The model from an endpoint's listing. Raises InvalidRequestError for one that is not listed, and ProviderError
    for one that is larger than the endpoint, or the job's experiment, takes."""
    if not endpoint.HasField("refreshed_at"):
        # Its models are not known yet.
        capabilities.refuse_larger_than_experiment(spec, numbers.parameters_b(spec.model))
        return endpoint_pb2.Model(model=spec.model)
    model = named(endpoint.models, spec.model)
    if model is None:
        raise InvalidRequestError(no_model(endpoint, spec.model), "model")
    size = model.parameters_b or numbers.parameters_b(model.model)
    capabilities.refuse_larger(spec.endpoint, spec.model, size, endpoint.max_model_b)
    capabilities.refuse_larger_than_experiment(spec, size)
    return model


def _asked(spec: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint, model: endpoint_pb2.Model) -> job_pb2.Receipt:
    """Which model is asked and how, apart from the tasks. Raises InvalidRequestError or ProviderError."""
    loglikelihood = spec.mode == suite_pb2.MODE_LOGLIKELIHOOD
    capabilities = model.capabilities
    if loglikelihood and capabilities.HasField("loglikelihood") and not capabilities.loglikelihood:
        raise no_loglikelihood(spec.endpoint)
    if spec.reuse.any_job and not takes_stored(spec.reuse, model.digest):
        raise InvalidRequestError(refusals.weights_unknown(spec.endpoint, spec.model), "reuse.any_job")
    return job_pb2.Receipt(
        endpoint_kind=endpoint.kind,
        server=endpoint.server,
        concurrency=endpoint.concurrency,
        model_digest=model.digest,
        parameters=asked_with(spec, endpoint.kind, capabilities).json,
        template="none" if loglikelihood or endpoint.kind == "baseline" else "endpoint",
        capabilities=capabilities,
        setup=model.setup,
    )


def _log(job_id: str, plan: unit_pb2.Plan, took_s: float) -> None:
    if plan.error:
        log.warning("job %s: cannot run: %s", job_id, plan.error, extra=of_job(job_id))
        return
    items = sum(task.items for task in plan.tasks)
    planned = f"{counted(len(plan.tasks), 'task')} of {counted(items, 'item')}"
    log.info("job %s: planned %s, data read in %.1f s", job_id, planned, took_s, extra=of_job(job_id))


def configuration(spec: job_pb2.JobSpec, receipt: job_pb2.Receipt, tasks: Sequence[job_pb2.TaskPlan]) -> str:
    """What a leaderboard ranks: SHA-256 over everything about the model and how it is asked, without the items.

    Prompts count with the tasks that run, so that a changed prompt of one task makes another configuration.
    """
    named = {
        "endpoint": spec.endpoint,
        "model": spec.model,
        "digest": receipt.model_digest,
        "setup": receipt.setup,
        "parameters": receipt.parameters,
        "template": receipt.template,
        "mode": proto_name(suite_pb2.Mode, mode_of(spec)),
        "shots": spec.suite.shots,
        "repeats": max(1, spec.suite.repeats),
        "prompts": sorted((task.task, task.version, task.prompt_hash) for task in tasks),
    }
    if spec.HasField("watching"):
        # Not the run before or after others: its items were chosen.
        named["watching"] = True
    canonical = json.dumps(named, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
