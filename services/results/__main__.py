"""Runs the results service: `python -m services.results`; with `--replica`, the reader of its copies."""

from __future__ import annotations

import asyncio
import sys

from services import rpc
from services.results import server
from services.results.replica import server as replica
from services.results.settings import Settings

REPLICA = "--replica"


async def main(stop: asyncio.Event) -> None:
    settings = Settings.from_env()
    await (replica.serve if REPLICA in sys.argv[1:] else server.serve)(settings, stop)


if __name__ == "__main__":
    rpc.run(main)
