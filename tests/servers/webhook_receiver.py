"""A receiver of webhooks: keeps what it is sent and answers as its path says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`/ok`; `/<status>` always answers so; `/flaky` 500 twice, then 200; `/busy` 429 with Retry-After once, then 200;
    `/redirect` leads to `/ok`; `/hang` never answers; `/close` breaks the connection off."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)

    def to(self, path: str) -> list[Call]:
        return [call for call in self.calls if call.path == path]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(Call(request.path, dict(request.headers), await request.read()))
        name, number = request.path.strip("/"), len(self.to(request.path))
        if name == "redirect":
            return web.Response(status=302, headers={"Location": f"{self.url}/ok"})
        if name == "hang":
            await asyncio.sleep(3600)
        if name == "close":
            assert request.transport is not None
            request.transport.abort()
        if name == "busy" and number == 1:
            return web.Response(status=429, headers={"Retry-After": "1"})
        if name == "flaky" and number <= 2:
            return web.Response(status=500)
        return web.Response(status=int(name) if name.isdigit() else 200)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """On a free port of loopback."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
