"""Callers' reads: a bounded number at once by turns of users, long ones apart, equal ones computed once.

What the service reads for itself goes to the database directly, which keeps threads for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from google.protobuf.message import Message

from services import rpc
from services.results.database import LONG_READERS, READERS, Connection, Database
from services.results.shared_answers import SharedAnswers
from services.results.visibility import Visibility
from services.results.waiting_lines import PARTY, Party, WaitingLine

T = TypeVar("T")

WAIT_S = 20.0
"""With the answer itself less than the 30 s that the gateway waits."""
_MOST_WAITING = 500
_MOST_LONG_WAITING = 50
_SHARDS_AT_ONCE = 2


class Questions:
    """Over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._quick = WaitingLine(READERS - 1, _MOST_WAITING, WAIT_S)
        self._long = WaitingLine(LONG_READERS - 1, _MOST_LONG_WAITING, WAIT_S)
        self._shards = WaitingLine(_SHARDS_AT_ONCE, _MOST_WAITING, WAIT_S)
        self._shared = SharedAnswers(lambda: database.version)

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """As the database's `read`. Raises BusyError when too many wait, or after WAIT_S seconds of waiting."""
        return await self._quick.run(self._database.read(ask), _party())

    async def read_long(self, ask: Callable[[Connection], T]) -> T:
        """As `read`, for what may take seconds."""
        return await self._long.run(self._database.read_long(ask), _party())

    async def read_shards(self, work: Coroutine[Any, Any, T]) -> T:
        """As `read`, for what fetches rows of datasets from NATS: a shard takes megabytes while it is read."""
        return await self._shards.run(work, _party())

    async def once(self, request: Message, visible: Visibility, answer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `answer` returns or raises, computed once for equal requests that see the same. It may use nothing of
        its caller but these two."""
        key = (request.DESCRIPTOR.full_name, request.SerializeToString(deterministic=True), visible)
        shared: T = await self._shared.get(key, answer, rpc.identity().user)
        return shared


def _party() -> Party:
    return PARTY.get(None) or Party(rpc.identity().user)
