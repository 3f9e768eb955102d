"""Which scheduler leads, and what NATS's failures mean for it.

The lease keeps two from flapping; the epoch keeps a stale one from writing. A lease alone does not guarantee mutual
exclusion: its holder may be paused and wake up late. So every write to the JOBS bucket expects the epoch key as this
leader wrote it. After a failed write, a leader no longer knows what is stored and starts over; for other callers,
another try may help.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
import nats.js.errors

from services import bus
from services.bus import heed_cancel
from services.errors import UnavailableError
from services.scheduler.ports import LeadershipLostError


@contextmanager
def ends_leadership(what: str) -> Iterator[None]:
    """Turns errors of NATS inside the block into LeadershipLostError."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise LeadershipLostError(f"{what}: {error or type(error).__name__}") from error


@contextmanager
def silent() -> Iterator[None]:
    """Turns errors of NATS inside the block into UnavailableError."""
    try:
        yield
    except (nats.errors.Error, nats.js.errors.Error) as error:
        raise UnavailableError(
            f"NATS does not answer ({error or type(error).__name__}). Try again in a moment."
        ) from error


log = logging.getLogger(__name__)

TTL_S = 10
RENEW_S = 3.0
_KEY = "leader"


class Lease:
    """The right to lead, held under `name` (one process per name)."""

    def __init__(self, connection: bus.Bus, name: str) -> None:
        self._bus = connection
        self._name = name
        self._sequence = 0
        self._renewed = -math.inf
        self._answered = True
        """Whether NATS took part in the last try."""
        self.holder = ""

    @property
    def held(self) -> bool:
        """Whether this process still has the lease, by its own clock; a process that was paused finds out here."""
        return asyncio.get_running_loop().time() - self._renewed < TTL_S

    @property
    def why_not(self) -> str:
        """Why this process does not lead, for users."""
        if self.holder not in ("", self._name):
            return f"This scheduler is a standby; {self.holder} leads. Try again."
        if not self._answered:
            return "The scheduler waits for NATS, which does not answer. Running jobs continue. Try again in a moment."
        return "The scheduler is starting and reads its jobs back. Try again in a moment."

    async def acquire(self) -> int:
        """Waits until this process leads; returns the new epoch. NATS being away only makes it wait."""
        while True:
            try:
                if await self._try():
                    self.holder = self._name
                    return await self._bus.kv_put(bus.JOBS, bus.EPOCH_KEY, self._name.encode())
            except (nats.errors.Error, nats.js.errors.Error) as error:
                self._answered = False
                log.warning("cannot ask for the lease: %s", error or type(error).__name__)
            await asyncio.sleep(0.5)

    async def _try(self) -> bool:
        try:
            last = await self._bus.js.get_last_msg(f"KV_{bus.LEASE}", bus.kv_subject(bus.LEASE, _KEY))
        except nats.js.errors.NotFoundError:
            return await self._write(0)
        self.holder = "" if bus.is_marker(last.headers) else (last.data or b"").decode()
        if self.holder in ("", self._name):
            return await self._write(last.seq or 0)
        return False

    async def _write(self, expected: int) -> bool:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        subject = bus.kv_subject(bus.LEASE, _KEY)
        sent = asyncio.get_running_loop().time()
        try:
            # Not kv.update(): it has no TTL and would make the lease permanent.
            ack = await self._bus.js.publish(subject, self._name.encode(), headers=headers, msg_ttl=TTL_S)
        except nats.js.errors.APIError as error:
            if error.err_code in (bus.ERR_WRONG_LAST_SEQUENCE, bus.ERR_WRONG_LAST_SEQUENCE_CONSTANT):
                return False
            raise
        self._sequence, self._renewed, self._answered = ack.seq, sent, True
        return True

    async def keep(self) -> None:
        """Renews until it fails for a whole lease time. Raises LeadershipLostError."""
        while True:
            heed_cancel()
            await asyncio.sleep(RENEW_S)
            try:
                if not await self._write(self._sequence):
                    raise LeadershipLostError("another scheduler has taken the lease")
            except (nats.errors.Error, nats.js.errors.Error) as error:
                self._answered = False
                if not self.held:
                    raise LeadershipLostError("NATS did not confirm a renewal in time") from error

    async def give_up(self) -> None:
        """Lets a standby lead at once."""
        try:
            headers = {"Nats-Expected-Last-Subject-Sequence": str(self._sequence), "KV-Operation": "DEL"}
            await self._bus.js.publish(bus.kv_subject(bus.LEASE, _KEY), headers=headers)
        except (nats.errors.Error, nats.js.errors.Error) as error:
            log.info("could not give up the lease, which will expire: %s", error or type(error).__name__)
