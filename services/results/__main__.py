"""Runs the results service: `python -m services.results`."""

from __future__ import annotations

import asyncio

from services import rpc
from services.results.server import serve
from services.results.settings import Settings


async def main(stop: asyncio.Event) -> None:
    await serve(Settings.from_env(), stop)


if __name__ == "__main__":
    rpc.run(main)
