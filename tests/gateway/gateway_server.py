"""A whole gateway over the fake services, on free loopback ports."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx

from deploy.local.ports import free_port
from services import bus
from services.gateway.access.auth import LocalAccess, TokenAccess
from services.gateway.server import build, listen, serve
from services.gateway.settings import Settings
from tests.gateway import fake_services, fake_world
from tests.gateway.conformance import conforms

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Loading the certificates that plain HTTP does not need takes 37 ms, once for each client."""


@dataclass
class Running:
    """A gateway that serves, the fake world behind it, and switches for its services."""

    url: str
    client: httpx.AsyncClient
    world: fake_world.World
    settings: Settings
    service_token: str = ""
    stops: dict[str, AsyncExitStack] = field(default_factory=dict)
    shutdown: asyncio.Event = field(default_factory=asyncio.Event)
    serving: asyncio.Task[None] | None = None

    async def start_service(self, name: str) -> None:
        served = {"scheduler": fake_services.serve_scheduler, "results": fake_services.serve_results}[name]
        stack = self.stops[name] = AsyncExitStack()
        await stack.enter_async_context(served(self.world, getattr(self.settings, name), self.service_token))

    async def stop_service(self, name: str) -> None:
        await self.stops.pop(name).aclose()


@asynccontextmanager
async def running(
    world: fake_world.World | None = None,
    *,
    access: LocalAccess | TokenAccess | None = None,
    service_token: str = "",
    settings: Settings | None = None,
    nats: str = "",
) -> AsyncIterator[Running]:
    """Serves until the block ends. Models can be called with the address of a NATS server. Browsers that log in with a
    provider come back to where the gateway listens."""
    settings = replace(
        settings or Settings(requests_per_minute=10_000),
        scheduler=f"127.0.0.1:{free_port()}",
        results=f"127.0.0.1:{free_port()}",
    )
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if settings.oidc:
        settings = replace(settings, oidc=replace(settings.oidc, pages=url))
    hooks = {"response": [conforms]}
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=90, event_hooks=hooks, verify=NO_TLS) as client:
        gateway = Running(url, client, world or fake_world.World(), settings, service_token)
        await gateway.start_service("scheduler")
        await gateway.start_service("results")
        context = build(settings, access or LocalAccess(), service_token)
        if nats:
            context.bus = await bus.connect(nats, "gateway")
        gateway.serving = asyncio.create_task(serve(context, gateway.shutdown, listener))
        try:
            yield gateway
        finally:
            # Kept connections would hold the server up.
            await client.aclose()
            gateway.shutdown.set()
            await gateway.serving
            if context.bus is not None:
                await context.bus.close()
            for name in list(gateway.stops):
                await gateway.stop_service(name)
