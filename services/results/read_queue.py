"""Callers' reads: a limited number at a time in turns of users, long ones separately, equal ones computed once; of
boards again only once a job has changed.

Turns of users keep one user's many questions from holding up another's few.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Hashable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from services import rpc
from services.errors import BusyError
from services.results.storage import lent_items
from services.results.storage.database import LONG_READERS, READERS, Connection, Reads
from services.results.storage.items_away import LostItemsError, with_items
from services.results.storage.lent_items import Copies
from services.results.visibility import Visibility
from services.telemetry import metrics

T = TypeVar("T")

_SHARE = 0.2
"""Weight of the newest work in the mean duration, which determines how fast the line moves."""
_LONGEST_RETRY_S = 30


class Party:
    """The users who wait for one answer. In a line, it has the turns of all of them."""

    def __init__(self, user: str) -> None:
        self.users = [user]
        self.served = False
        """It had a turn before: its next work goes first, or the earlier work would be useless."""
        self._turn: tuple[WaitingLine, asyncio.Future[None]] | None = None

    def join(self, user: str) -> None:
        """Another user asks the same."""
        if user not in self.users:
            self.users.append(user)
            if self._turn is not None:
                line, turn = self._turn
                line.also(user, turn)

    def waits(self, turn: tuple[WaitingLine, asyncio.Future[None]] | None) -> None:
        self._turn = turn


PARTY: ContextVar[Party] = ContextVar("party")
"""The party of the question that is being answered."""


class WaitingLine:
    """At most `at_once` works at a time. Up to `most` others wait, each for `wait_s` at most; the works of one user
    keep their order, and the users take turns. In a full line a user with fewer waiting works takes the newest place of
    the user with the most."""

    def __init__(self, at_once: int, most: int, wait_s: float) -> None:
        self._free = at_once
        self._at_once = at_once
        self._most = most
        self._wait_s = wait_s
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By user, the next one first. A party's turn is in the queue of each of its users."""
        self._mean_s = 0.1

    async def run(self, work: Coroutine[Any, Any, T], party: Party) -> T:
        """The result of the work. Raises BusyError when the line is full or does not move; then the work does not
        begin.

        If the caller goes away while it runs, it continues: it holds its place until it is done.
        """
        try:
            await self._enter(party)
        except BaseException:
            work.close()
            raise
        party.served = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        running = loop.create_task(work)

        def done(task: asyncio.Task[T]) -> None:
            self._mean_s += _SHARE * (loop.time() - began - self._mean_s)
            self._leave()
            if not task.cancelled():
                task.exception()  # otherwise nobody retrieves the error of a caller that has gone

        running.add_done_callback(done)
        return await asyncio.shield(running)

    def also(self, user: str, turn: asyncio.Future[None]) -> None:
        """Another user waits for a turn in this line."""
        if not turn.done():
            self._waiting.setdefault(user, deque()).append(turn)

    async def _enter(self, party: Party) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        if self._length() >= self._most:
            self._make_room(party)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for user in party.users:
            line = self._waiting.setdefault(user, deque())
            line.appendleft(turn) if party.served else line.append(turn)
        party.waits((self, turn))
        try:
            async with asyncio.timeout(self._wait_s):
                await turn
        except TimeoutError:
            self._give_up(turn)
            raise self._busy() from None
        except BaseException:
            self._give_up(turn)
            raise
        finally:
            party.waits(None)

    def _length(self) -> int:
        return len({turn for line in self._waiting.values() for turn in line})

    def _make_room(self, party: Party) -> None:
        """Raises BusyError when the party's users have as many places as anybody else."""
        own = min(len(self._waiting.get(user, ())) for user in party.users)
        longest = max(self._waiting.values(), key=len, default=deque())
        if len(longest) <= own + 1:
            raise self._busy()
        turn = longest[-1]
        self._drop(turn)
        turn.set_exception(self._busy())

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        self._drop(turn)
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self._leave()  # its turn came at the same moment

    def _drop(self, turn: asyncio.Future[None]) -> None:
        for user, line in list(self._waiting.items()):
            with contextlib.suppress(ValueError):
                line.remove(turn)
            if not line:
                del self._waiting[user]

    def _leave(self) -> None:
        while self._waiting:
            user, line = next(iter(self._waiting.items()))
            turn = line[0]
            self._drop(turn)
            if user in self._waiting:
                self._waiting[user] = self._waiting.pop(user)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _busy(self) -> BusyError:
        metrics.REFUSALS.add("questions")
        wait_s = self._length() * self._mean_s / self._at_once
        seconds = min(_LONGEST_RETRY_S, max(1, math.ceil(wait_s)))
        return BusyError(f"Too many requests are waiting for the results service. Try again in {seconds} s.", seconds)


WAIT_S = 20.0
"""Together with the answer itself less than the 30 s that the gateway waits."""
_MOST_WAITING = 500
_MOST_LONG_WAITING = 50
_SHARDS_AT_ONCE = 2


@dataclass(slots=True)
class _Flight:
    """One computation, its callers, and the database's version when it began; None before that."""

    task: asyncio.Task[Any]
    party: Party
    waiting: int = 0
    version: int | None = None


class SharedAnswers:
    """Computes the answer to equal questions once. `version` counts the database's changes.

    A question joins a computation that began after the last change, or that has not begun, so an answer is never older
    than its question. For equal questions, at most one computation runs and one waits.
    """

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._running: dict[Hashable, _Flight] = {}
        self._next: dict[Hashable, _Flight] = {}

    async def get(self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, Any]], user: str) -> Any:
        """The result or error of `compute`, which finds its callers in PARTY. It is cancelled when nobody waits any
        more."""
        flight = self._running.get(key) or self._next.get(key)
        if flight is None:
            flight = self._start(key, compute, user, None)
        elif flight.version is not None and flight.version != self._version():
            flight = self._next.get(key) or self._start(key, compute, user, flight)
        flight.party.join(user)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()

    def _start(
        self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, Any]], user: str, before: _Flight | None
    ) -> _Flight:
        async def fly() -> Any:
            if before is not None:
                await asyncio.wait((before.task,))
                if self._next.get(key) is flight:
                    self._running[key] = self._next.pop(key)
            flight.version = self._version()
            try:
                return await compute()
            finally:
                self._forget(key, flight)

        party, context = Party(user), copy_context()
        context.run(PARTY.set, party)
        flight = _Flight(asyncio.get_running_loop().create_task(fly(), context=context), party)
        (self._running if before is None else self._next)[key] = flight
        return flight

    def _forget(self, key: Hashable, flight: _Flight) -> None:
        for flights in (self._running, self._next):
            if flights.get(key) is flight:
                del flights[key]


_KEPT_S = 60.0
"""Periods such as "the last 30 days" move on."""
_KEPT_BYTES = 16 * 1024 * 1024


class KeptAnswers:
    """Answers that hold until a job changes, for a minute at most; the least recently used ones go first. `version`
    counts the changes."""

    def __init__(self, version: Callable[[], int], most_bytes: int = _KEPT_BYTES) -> None:
        self._version = version
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[int, float, Message]] = OrderedDict()
        self._bytes = 0

    def find(self, key: Hashable) -> Message | None:
        if key not in self._kept:
            return None
        version, began, answer = self._kept[key]
        if version != self._version() or time.monotonic() - began >= _KEPT_S:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return answer

    async def compute(
        self, key: Hashable, answer: Callable[[], Coroutine[Any, Any, T]], lasts: Callable[[T], bool]
    ) -> T:
        """Keeps the answer if it `lasts`. It is as old as the beginning of its computation."""
        version, began = self._version(), time.monotonic()
        found = await answer()
        if isinstance(found, Message) and lasts(found):
            self._drop(key)
            self._kept[key] = version, began, found
            self._bytes += found.ByteSize()
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return found

    def _drop(self, key: Hashable) -> None:
        if key in self._kept:
            self._bytes -= self._kept.pop(key)[2].ByteSize()


class Questions:
    """Over one database."""

    def __init__(self, database: Reads) -> None:
        self._database = database
        self._quick = WaitingLine(READERS - 1, _MOST_WAITING, WAIT_S)
        self._long = WaitingLine(LONG_READERS - 1, _MOST_LONG_WAITING, WAIT_S)
        self._shards = WaitingLine(_SHARDS_AT_ONCE, _MOST_WAITING, WAIT_S)
        self._shared = SharedAnswers(lambda: database.version)
        self._kept = KeptAnswers(lambda: database.jobs_version)

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """As the database's `read`. Raises BusyError when too many wait, or after WAIT_S seconds of waiting."""
        # A read that waits for items holds no place.
        return await with_items(
            self._database.bring_back, lambda: self._quick.run(self._database.read(ask, waits=False), _party())
        )

    async def read_long(self, ask: Callable[[Connection], T]) -> T:
        """As `read`, for reads that may take seconds."""
        read = partial(
            with_items,
            self._database.bring_back,
            lambda: self._long.run(self._database.read_long(ask, waits=False), _party()),
        )
        try:
            return await read()
        except LostItemsError:
            # It may do without them.
            return await read()

    async def read_with_copies(self, ask: Callable[[Connection, Copies], T]) -> T:
        """As `read_long`. Items that are in the archive alone stay there: the read has copies of them."""
        return await lent_items.with_copies(
            self._database.lend,
            lambda copies: self._long.run(self._database.read_long(lambda c: ask(c, copies), waits=False), _party()),
        )

    async def read_shards(self, work: Coroutine[Any, Any, T]) -> T:
        """As `read`, for fetching rows of datasets from NATS: a shard takes megabytes while it is read."""
        return await self._shards.run(work, _party())

    async def once(
        self,
        request: Message,
        visible: Visibility,
        answer: Callable[[], Coroutine[Any, Any, T]],
        lasts: Callable[[T], bool] | None = None,
    ) -> T:
        """The result or error of `answer`, computed once for equal requests that see the same. It may use nothing of
        its caller except these two. A result that `lasts` until a job changes is kept."""
        key = (request.DESCRIPTOR.full_name, request.SerializeToString(deterministic=True), visible)
        found: Any = self._kept.find(key) if lasts else None
        if found is None:
            work = partial(self._kept.compute, key, answer, lasts) if lasts else answer
            found = await self._shared.get(key, work, rpc.identity().user)
        return cast(T, found)


def _party() -> Party:
    return PARTY.get(None) or Party(rpc.identity().user)
