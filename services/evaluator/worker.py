"""The evaluator's working part: pulls units of every endpoint, watches their jobs, announces itself, ends in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg

from services.bus import (
    JOBS,
    Bus,
    JobHeaders,
    ProviderBatches,
    drain_key,
    end_tasks,
    is_marker,
    job_key,
    kv_subject,
    unit_token,
)
from services.evaluator.announce import Announcer
from services.evaluator.calls.server import CallServer
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.datasets.store import DatasetStore
from services.evaluator.endpoint_worker import EndpointWorker
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.imports.store import ImportStore, NoImports
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.planning.planner import Planner
from services.evaluator.plugins.registry import Plugins
from services.evaluator.provider_batches.base import Tools
from services.evaluator.provider_batches.leftovers import Leftovers
from services.evaluator.provider_batches.worker import BatchWorker, batch_api
from services.evaluator.providers.protocol.provider import Provider
from services.evaluator.settings import Settings
from services.evaluator.stored.rescorer import Rescorer
from services.evaluator.stored.responses import BudgetStore, KnownAnswers, ResponseStore
from services.evaluator.storing import TRANSIENT, until_stored
from services.evaluator.units.unit_loader import Loader
from services.evaluator.units.units_in_hand import Hand
from services.telemetry import metrics
from touchstone.v1 import unit_pb2

log = logging.getLogger(__name__)

_AGAIN_S = 0.25
_DRAIN_LOOK_S, _DRAIN_AGAIN_S = 5.0, 1.0
_JOB_SUBJECT = kv_subject(JOBS, job_key(""))


class Worker:
    """One evaluator over its endpoints. Tests pass their own providers as `make_provider`. `store` has earlier answers,
    `imports` those of other tools, `datasets` the uploaded rows, and `plugins` what installed packages add. `budgets`
    says which calls of recorded runs their budgets allow."""

    def __init__(
        self,
        settings: Settings,
        bus: Bus,
        catalogue: Catalogue,
        endpoints: Sequence[Endpoint],
        make_provider: Callable[[Endpoint], Provider],
        store: ResponseStore | None = None,
        imports: ImportStore | None = None,
        datasets: DatasetStore | None = None,
        plugins: Plugins | None = None,
        budgets: BudgetStore | None = None,
    ) -> None:
        self._settings = settings
        self._bus = bus
        self._hand = Hand(bus)
        imports = imports or NoImports()
        plugins = plugins or Plugins()
        opened = OpenDatasets(datasets, plugins.scorers)
        loader = Loader(catalogue, imports, opened)
        known: dict[str, EndpointListing] = {}
        answers = KnownAnswers(store, known, self._newest)
        self._workers = [
            EndpointWorker(
                endpoint,
                plugins.provider(endpoint) or make_provider(endpoint),
                bus,
                self._hand,
                loader,
                answers,
                settings,
            )
            for endpoint in endpoints
        ]
        for endpoint in endpoints:
            metrics.CALL_ERRORS.begin(endpoint.name)
            metrics.TOKENS.begin(endpoint.name)
        self._listings = [
            EndpointListing(worker.endpoint, worker.provider, worker.paces, self._changed) for worker in self._workers
        ]
        known.update((listing.endpoint.name, listing) for listing in self._listings)
        self._planner = Planner(bus, self._hand, catalogue, loader, known, imports, opened, settings)
        self._rescorer = Rescorer(bus, self._hand, loader, answers, imports, settings)
        batches = ProviderBatches(bus)
        apis = {
            worker.endpoint.name: api
            for worker in self._workers
            if (api := batch_api(worker.endpoint, worker.provider)) is not None
        }
        self._leftovers = Leftovers(bus, batches, apis, settings.batch_settle_s)
        self._batch_workers = [
            BatchWorker(
                worker.endpoint,
                Tools(apis[worker.endpoint.name], bus, loader, answers, settings),
                batches,
                self._hand,
                self._leftovers.look,
            )
            for worker in self._workers
            if worker.endpoint.name in apis
        ]
        pairs = list(zip(self._workers, self._listings, strict=True))
        self._calls = CallServer(bus, pairs, settings.name, budgets)
        self._drained = False
        self._drain_news = asyncio.Event()
        self._announcer = Announcer(settings.name, bus, catalogue, self._hand, pairs, plugins.announced())

    async def run(self, stop: asyncio.Event, ready: Callable[[], Awaitable[None]]) -> None:
        """Works until `stop` is set, then drains. Calls `ready` once it is announced and its consumers exist."""
        await self._bus.kv_watch(JOBS, job_key("*"), self._job_changed)
        await self._bus.kv_watch(JOBS, drain_key(self._settings.name), self._drain_changed)
        await until_stored(self._planner.open, "the consumer of planning units")
        await until_stored(self._rescorer.open, "the consumer of stored answers")
        for worker in self._workers:
            await until_stored(worker.open, f"the consumer of {worker.endpoint.name}")
        for batch_worker in self._batch_workers:
            await until_stored(batch_worker.open, f"the consumer of {batch_worker.endpoint.name}'s batches")
        self._drained = self._announcer.drain_requested = await self._is_drained()
        announced = asyncio.Event()
        background = [
            asyncio.create_task(loop)
            for loop in (
                self._announcer.run(announced),
                self._heartbeats(),
                self._rechecks(),
                self._leftovers.run(),
                *(listing.run() for listing in self._listings),
                *(worker.permit() for worker in self._workers if worker.endpoint.requests_per_minute),
            )
        ]
        pulling = [asyncio.create_task(self._take_work())]
        stopping = asyncio.create_task(stop.wait())
        try:
            await _until_any(stopping, asyncio.create_task(announced.wait()), background + pulling)
            if not stop.is_set():
                log.info("evaluator %s is ready", self._settings.name)
                await ready()
                await _until_any(stopping, stopping, background + pulling)
        finally:
            stopping.cancel()
            await end_tasks(pulling)
            await self._announcer.drain()
            grace_s = self._settings.grace_s
            await asyncio.gather(self._hand.drain(grace_s), self._calls.drain(grace_s))
            await end_tasks(background)
            for worker in self._workers:
                await worker.provider.close()
            for batch_worker in self._batch_workers:
                await batch_worker.close()

    async def measure(self) -> None:
        """Sets the gauges of slots and units."""
        metrics.SLOTS.replace({(worker.endpoint.name,): worker.paces.whole.slots for worker in self._workers})
        metrics.SLOTS_BUSY.replace({(worker.endpoint.name,): worker.slots_busy for worker in self._workers})
        none = {(worker.endpoint.name,): 0 for worker in self._workers}
        metrics.UNITS_IN_HAND.replace(none | Counter((held.endpoint,) for held in self._hand.units.values()))

    async def _take_work(self) -> None:
        """Pulls units and accepts calls until cancelled, except while an admin drains this evaluator."""
        while True:
            if self._drained:
                log.info("evaluator %s is drained: it takes no more units", self._settings.name)
                self._hand.give_back_unbegun()
            loops = [] if self._drained else [asyncio.create_task(loop) for loop in self._loops()]
            change = asyncio.create_task(self._drain_changes())
            try:
                await _until_any(change, change, loops)
            finally:
                change.cancel()
                await end_tasks(loops)
            self._announcer.drain_requested = self._drained
            self._changed()

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        """What takes work."""
        workers = [worker.run() for worker in self._workers] + [worker.run() for worker in self._batch_workers]
        return [self._calls.run(), self._planner.run(), self._rescorer.run(), *workers]

    async def _drain_changes(self) -> bool:
        """Returns when an admin drains or resumes this evaluator."""
        while True:
            self._drain_news.clear()
            drained = await self._is_drained()
            if drained != self._drained:
                self._drained = drained
                return drained
            # News is lost while NATS is away.
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_LOOK_S):
                    await self._drain_news.wait()

    async def _drain_changed(self, _: Msg) -> None:
        self._drain_news.set()

    async def _is_drained(self) -> bool:
        """Whether an admin drains this evaluator. Waits while NATS is away."""
        while True:
            try:
                return await self._bus.is_drained(self._settings.name)
            except TRANSIENT as error:
                log.warning("cannot look up whether this evaluator is drained (%s)", str(error) or type(error).__name__)
                await asyncio.sleep(_DRAIN_AGAIN_S)

    async def _newest(self, unit: unit_pb2.Unit) -> int:
        about = f"the newest message of unit {unit_token(unit.unit)} of job {unit.job_id}"
        position, _ = await until_stored(lambda: self._bus.last_result(unit.job_id, unit.unit), about)
        return position

    def _changed(self) -> None:
        self._announcer.changed()

    async def _job_changed(self, msg: Msg) -> None:
        job_id = msg.subject.removeprefix(_JOB_SUBJECT)
        try:
            self._hand.heard(job_id, None if is_marker(msg.headers) else JobHeaders.decode(msg.headers))
        except ValueError:
            log.warning("the record of job %s has no state in its headers", job_id)

    async def _heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._settings.ack_wait_s / 3)
            try:
                await self._hand.heartbeat()
            except TRANSIENT as error:
                log.warning("a heartbeat was not sent (%s)", str(error) or type(error).__name__)

    async def _rechecks(self) -> None:
        """Core messages are lost while NATS is away: after each reconnect the jobs in hand are looked up again."""
        lost = asyncio.Event()
        with self._bus.telling_of_reconnects(lost.set):
            while True:
                await lost.wait()
                lost.clear()
                try:
                    await self._hand.check_jobs()
                except TRANSIENT as error:
                    log.warning("cannot look up the jobs in progress (%s)", str(error) or type(error).__name__)
                    await asyncio.sleep(_AGAIN_S)
                    lost.set()


async def _until_any(stopping: asyncio.Task[bool], event: asyncio.Task[bool], loops: list[asyncio.Task[None]]) -> None:
    """Waits for either; a loop that ends on its own is a bug and ends the process with its error."""
    await asyncio.wait({stopping, event, *loops}, return_when=asyncio.FIRST_COMPLETED)
    if event is not stopping:
        event.cancel()
    for loop in loops:
        if loop.done():
            loop.result()
