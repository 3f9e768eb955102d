"""Looks at the health of a process that is replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deploy.local import health
from deploy.local.ports import free_port
from deploy.local.pulse import State
from deploy.local.watching import ASK_EVERY_S
from services import rpc


@asynccontextmanager
async def server(address: str) -> AsyncIterator[None]:
    async with rpc.serve(address, rpc.Authenticator(None, ""), [], grace_s=0) as made:
        await made.set_ready(True)
        yield


async def test_one_look_reaches_each_successor_at_an_address_in_time() -> None:
    address = f"127.0.0.1:{free_port()}"
    look = health.grpc_life(address)
    for _ in range(3):
        assert await look() is State.SILENT
        await asyncio.sleep(ASK_EVERY_S)
        async with server(address):
            assert await look() is State.WELL
