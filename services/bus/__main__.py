"""`python -m services.bus` sets NATS up: it checks every node, creates what is missing, and makes the copies that
TOUCHSTONE_NATS_REPLICAS asks for. It may run at any time, also again."""

from __future__ import annotations

import asyncio

from services import rpc
from services.bus.connection import Settings, connect, require_sync
from services.bus.streams import replicate
from services.errors import InvalidRequestError

_COPYING_S = 3600.0
"""Most seconds for the copies of one stream."""


async def main(stop: asyncio.Event) -> None:
    """Ends when everything is in place, or when `stop` is set. Raises TouchstoneError."""
    setting_up = asyncio.create_task(_set_up(Settings.from_env()))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((setting_up, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if setting_up.done():
        setting_up.result()
    setting_up.cancel()


async def _set_up(settings: Settings) -> None:
    if not settings.monitor_url:
        raise InvalidRequestError("Set TOUCHSTONE_NATS_MONITOR_URL to the monitoring address of each node of NATS.")
    bus = await connect(settings.url, "setup")
    try:
        await require_sync(settings.monitor_url, all_nodes=True)
        await bus.ensure(settings.results_max_bytes, settings.replicas)
        await replicate(bus.js, settings.replicas, print, _COPYING_S)
    finally:
        await bus.close()
    print(f"NATS is set up: every stream is there with {settings.replicas} copies or more.")


if __name__ == "__main__":
    rpc.run(main)
