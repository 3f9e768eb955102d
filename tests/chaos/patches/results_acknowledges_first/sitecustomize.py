"""A control: this results service acknowledges item results, and notes their position, before it stores them."""

from __future__ import annotations

import sys
from pathlib import Path

GATHERING_S = 1.0

if "services.results" in sys.orig_argv:
    root = Path(__file__).parents[4]
    sys.path[:0] = [str(root), str(root / "protos" / "gen")]

    import asyncio

    from nats.aio.msg import Msg

    from services.bus import RESULTS
    from services.results.intake import writes
    from services.results.intake.feeds import Feed
    from services.results.intake.writes import Mark

    commit = Feed._commit

    async def acknowledge_first(self: Feed, mark: Mark, messages: list[Msg]) -> None:
        if self._stream.name == RESULTS:
            await self._database.write(lambda connection: writes.write_mark(connection, mark))
            await self._stream.acknowledge(messages)
            await asyncio.sleep(GATHERING_S)
        await commit(self, mark, messages)

    Feed._commit = acknowledge_first  # type: ignore[method-assign]
