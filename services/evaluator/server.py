"""Wires the evaluator: settings, NATS, catalogue, providers, worker, and the health service."""

from __future__ import annotations

import asyncio

from services import bus, rpc
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints import endpoint
from services.evaluator.engine.ownership import Ownership
from services.evaluator.lm_eval.suite import LmEvalSuite
from services.evaluator.providers.registry import provider
from services.evaluator.responses import ResultsStore
from services.evaluator.settings import Settings
from services.evaluator.worker import Worker


async def main(stop: asyncio.Event) -> None:
    """Runs an evaluator until `stop` is set. Raises TouchstoneError when it cannot start."""
    settings = Settings.from_env()
    ownership = Ownership()
    configured = ownership.claim(endpoint.load(settings.endpoints_file))
    catalogue = Catalogue(settings.data_dir, [LmEvalSuite(settings.data_dir)] if settings.lm_eval else [])
    connection = await bus.open_bus(bus.Settings.from_env(), f"evaluator {settings.name}")
    # Connects when it is first asked: an evaluator of plain jobs runs without the results service.
    channel = rpc.channel(settings.results)
    store = ResultsStore(channel, settings.service_token)
    try:
        async with rpc.serve(settings.listen, rpc.Authenticator(None, "")) as server:
            worker = Worker(settings, connection, catalogue, configured, provider, store)
            await worker.run(stop, lambda: server.set_ready(True))
    finally:
        await channel.close()
        await connection.close()
        ownership.close()
