"""Wires the evaluator: settings, NATS, catalogue, providers, worker, and the health service."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from functools import partial

from services import bus, rpc
from services.bus.measuring import measure_connection
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints import endpoint
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.table import FurtherKinds
from services.evaluator.engine.ownership import Ownership
from services.evaluator.hub_import.splits import SplitReader
from services.evaluator.imports.store import ImportsOfResults
from services.evaluator.lm_eval.suite import LmEvalSuite
from services.evaluator.make_provider import provider
from services.evaluator.plugins.registry import Plugins
from services.evaluator.providers.protocol import receiving
from services.evaluator.settings import Settings
from services.evaluator.stored.responses import ResultsStore
from services.evaluator.worker import Worker
from services.telemetry import metrics, serving

_YOUNG_OBJECTS = 20_000
"""New objects at which Python looks for garbage in cycles. By default 700: hundreds of calls at a time then trigger it
every 50 items, at a sixth of the evaluator's time and without use: answered calls leave no cycles, failed ones few.
"""


async def main(stop: asyncio.Event) -> None:
    """Runs an evaluator until `stop` is set. Raises TouchstoneError when it cannot start."""
    settings = Settings.from_env()
    receiving.ROOM.most_bytes = settings.receive_max_bytes
    ownership = Ownership()
    open_suites = [LmEvalSuite(settings.data_dir)] if settings.lm_eval else []
    plugins = await Plugins.load(settings.plugins, settings.data_dir)
    try:
        further = FurtherKinds(plugins.kinds, plugins.missing_kinds)
        configured = ownership.claim(endpoint.load(settings.endpoints_file, further=further))
        catalogue = Catalogue(settings.data_dir, open_suites, plugins.suites)
        await _serve(settings, stop, catalogue, configured, plugins)
    finally:
        plugins.close()
        ownership.close()


async def _serve(
    settings: Settings,
    stop: asyncio.Event,
    catalogue: Catalogue,
    configured: Sequence[Endpoint],
    plugins: Plugins,
) -> None:
    nats = bus.Settings.from_env()
    connection = await bus.open_bus(nats, f"evaluator {settings.name}")
    auth, tls = rpc.Settings.from_env(), rpc.Tls.from_env()
    # Evaluators may not write tokens.
    lookup = partial(connection.token, note_use=False) if auth.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, auth.service_token, auth.wrong_tokens)
    # Connects at the first request: an evaluator of plain jobs runs without the results service.
    channel = rpc.channel(settings.results, tls)
    store = ResultsStore(channel, settings.service_token)
    imports = ImportsOfResults(channel, settings.service_token)
    secrets = [settings.service_token, *nats.secrets, *(known.api_key for known in configured)]
    try:
        async with (
            serving.serve(metrics.EVALUATOR, settings.metrics) as shown,
            bus.job_logs(connection.publish_log, f"evaluator {settings.name}", secrets),
            rpc.serve(settings.listen, authenticate, tls=tls) as server,
        ):
            datasets = bus.Datasets(connection)
            worker = Worker(
                settings, connection, catalogue, configured, provider, store, imports, datasets, plugins, store
            )
            shown.look(worker.measure)
            shown.look(partial(measure_connection, connection))
            _collect_seldom()
            splits = asyncio.create_task(bus.serve_splits(connection, SplitReader(settings.data_dir).open))
            reaching = asyncio.create_task(bus.watch_nats(connection, server.set_reaches_nats))
            try:
                await worker.run(stop, lambda: server.set_ready(True))
            finally:
                await bus.end_tasks([splits, reaching])
    finally:
        await channel.close()
        await connection.close()


def _collect_seldom() -> None:
    """Objects that exist after the start stay until the end, and are not scanned again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
