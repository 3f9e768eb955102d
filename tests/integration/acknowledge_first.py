"""`python -m tests.integration.acknowledge_first` runs results with a fault: it acknowledges before it stores."""

from __future__ import annotations

import asyncio

from nats.aio.msg import Msg

from services import rpc
from services.results.__main__ import main
from services.results.intake import feeds, writes


async def commit(self: feeds.Feed, mark: writes.Mark, messages: list[Msg]) -> None:
    await self._database.write(lambda connection: writes.write_mark(connection, mark))
    await self._stream.acknowledge(messages)
    await asyncio.sleep(0.2)
    await self._database.write(lambda connection: self._store(connection, messages))


if __name__ == "__main__":
    feeds.Feed._commit = commit  # type: ignore[method-assign]
    rpc.run(main)
