"""What goes wrong in a simulation, drawn from its seed: crashes at a step, cuts, freezes, losses, refusals."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from services import bus
from services.scheduler.nats import lease
from tests.simulator.jetstream import FakeServer
from tests.simulator.loop import SimLoop
from tests.simulator.processes import SCHEDULERS, Installation

_PATIENCE_S = 3.0
_LEFT_S = 5.0
"""After a fault, nothing of it is left: who was away is connected again, and has heard what was said meanwhile."""
_REFUSED = {"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}


@dataclass
class Weather:
    """How likely small faults are, for each message, and how slow the wires and disks are."""

    slowest: float
    loses: float
    refuses: float
    breaks: float
    fails: float
    disk: float

    @classmethod
    def draw(cls, chance: Random) -> Weather:
        fair = chance.random() < 0.4
        return cls(
            slowest=chance.choice([0.001, 0.003, 0.02]),
            loses=0.0 if fair else chance.choice([0.0, 0.002, 0.01]),
            refuses=0.0 if fair else chance.choice([0.0, 0.002, 0.02]),
            breaks=0.0 if fair else chance.choice([0.0, 0.02, 0.1]),
            fails=0.0 if fair else chance.choice([0.0, 0.0, 0.02, 0.2]),
            disk=chance.choice([0.0005, 0.003, 0.05]),
        )

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self.loses = self.refuses = self.breaks = self.fails = 0.0


class Faults:
    """Makes faults while operations go on. `names` are the processes that may be hit; `set_clock` is called after each
    step of the clock on the wall, of which there are none without it."""

    def __init__(
        self,
        loop: SimLoop,
        chance: Random,
        nats: FakeServer,
        installation: Installation,
        weather: Weather,
        names: list[str],
        set_clock: Callable[[], None] | None,
    ) -> None:
        self._loop, self._chance, self._nats = loop, chance, nats
        self._installation, self._weather, self._names = installation, weather, names
        self.kills: dict[str, int] = {}
        self.made = weather.breaks + weather.fails + weather.loses + weather.refuses > 0
        """Whether anything has gone wrong, or may have."""
        self._under_way = 0
        self._wrong_at = -math.inf
        """When something was wrong last."""
        self._set_clock = set_clock
        nats.lose = lambda subject: weather.loses > 0 and chance.random() < weather.loses
        nats.refuse = self._refuse
        loop.disk_delay = lambda: chance.uniform(0.0001, weather.disk)

    def _refuse(self, subject: str) -> dict[str, Any] | None:
        return _REFUSED if self._weather.refuses and self._chance.random() < self._weather.refuses else None

    def is_calm(self) -> bool:
        """Whether whoever is told something hears it at once: no message is lost or refused, and nobody is away or was
        a moment ago. Calls between services may break."""
        processes = self._installation.running.values()
        if self._under_way or self._weather.loses + self._weather.refuses > 0:
            return False
        if any(process.crash_at is not None for process in processes):
            return False
        wrong = max(self._wrong_at, self._installation.changed_at, *(process.frozen_until for process in processes))
        return self._loop.time() > wrong + _LEFT_S

    async def one(self) -> None:
        """A fault of some kind, now or in a few steps."""
        self.made = True
        kinds: list[tuple[int, Callable[[], Any]]] = [
            (10, self._crash_soon),
            (3, self._kill_now),
            (3, self._server),
            (1, self._server_in_rollup),
            (2, self._cut),
            (2, self._freeze),
            (2, self._stop),
            (1, self._break),
            (1, self._tear),
        ]
        if "standby" in self._names:
            kinds.append((12, self._usurp))
        if self._set_clock:
            kinds.append((8, self._step_clock))
        (kind,) = self._chance.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
        self._under_way += 1
        try:
            await kind()
        finally:
            self._under_way -= 1
            self._wrong_at = self._loop.time()

    def _any(self) -> str:
        return self._chance.choice(self._names)

    def _note(self, what: str) -> None:
        self._installation.trace(f"fault: {what}")

    def _count(self, name: str) -> None:
        self.kills[name] = self.kills.get(name, 0) + 1

    async def _crash_soon(self) -> None:
        name = self._any()
        process = self._installation.running[name]
        if process.alive and process.crash_at is None:
            steps = int(self._chance.paretovariate(0.7) * 4)
            process.crash_at = process.steps + min(steps, 2000)
            self._count(name)
            self._note(f"{name} will crash at its step {process.crash_at}")

    async def _kill_now(self) -> None:
        name = self._any()
        self._note(f"kill {name}")
        process = self._installation.running[name]
        if self._chance.random() < 0.3:
            for connection in list(self._nats.network.connections):
                if connection.process is process:
                    connection.lose_writes()
        self._installation.kill(name)
        self._count(name)

    async def _server(self) -> None:
        if not self._nats.up:
            return
        away = self._chance.choice([0.1, 1.0, 4.0])
        self._note(f"NATS crashes for {away} s")
        self._nats.crash()
        await asyncio.sleep(away)
        self._nats.start()
        self._note("NATS is back")

    async def _server_in_rollup(self) -> None:
        """NATS crashes after it has stored a message and before it has removed what the message replaces."""
        self._note("NATS will crash while it replaces a message")
        self._nats.dies_in_rollup = self._nats.up
        self._nats.died.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._nats.died.wait()
        self._nats.dies_in_rollup = False
        if not self._nats.up:
            await asyncio.sleep(self._chance.choice([0.1, 1.0]))
            self._nats.start()
            self._note("NATS is back")

    async def _cut(self) -> None:
        await self._cut_off(self._any(), self._chance.choice([0.5, 3.0, 12.0]))

    async def _cut_off(self, name: str, lasts: float) -> None:
        self._note(f"{name} is cut off for {lasts} s")
        self._nats.network.cut_off.add(name)
        self._break_of(name)
        await asyncio.sleep(lasts)
        self._nats.network.cut_off.discard(name)

    async def _break(self) -> None:
        name = self._any()
        self._note(f"the connection of {name} breaks")
        self._break_of(name)

    def _break_of(self, name: str) -> None:
        for connection in list(self._nats.network.connections):
            if connection.process is not None and connection.process.name == name:
                connection.broken()

    async def _freeze(self) -> None:
        self._freeze_for(self._any(), self._chance.choice([0.5, 4.0, 14.0]))

    def _freeze_for(self, name: str, lasts: float) -> None:
        self._note(f"{name} is frozen for {lasts} s")
        self._loop.freeze(self._installation.running[name], lasts)

    async def _usurp(self) -> None:
        """Whoever leads is kept away for longer than its lease lasts, and comes back to a world with another leader."""
        name = next((each for each in ("scheduler", "standby") if self._leads(each)), "scheduler")
        lasts = self._chance.uniform(lease.TTL_S, lease.TTL_S + 4.0)
        if self._chance.random() < 0.5:
            await self._cut_off(name, lasts)
        else:
            self._freeze_for(name, lasts)
            await asyncio.sleep(lasts)

    def _leads(self, name: str) -> bool:
        holder = self._nats.streams[f"KV_{bus.LEASE}"].last_matching(bus.kv_subject(bus.LEASE, "leader"))
        return holder is not None and holder.data == SCHEDULERS[name].encode()

    async def _tear(self) -> None:
        """A power cut tears the newest block of WORK: units are gone though they were stored."""
        if not self._nats.up:
            return
        work = self._nats.streams.get(bus.WORK)
        torn = list(work.messages)[-self._chance.randint(1, 3) :] if work is not None else []
        for sequence in torn:
            work.remove(sequence)  # type: ignore[union-attr]
        self._note(f"WORK loses {len(torn)} units")
        await self._server()

    async def _step_clock(self) -> None:
        assert self._set_clock is not None
        self._set_clock()
        step = self._chance.choice([30.0, 61.0, 125.0, -61.0, -125.0])
        self._loop.ahead += step
        self._note(f"the clock is set by {step:+} s")
        self._set_clock()

    async def _stop(self) -> None:
        name = self._any()
        self._note(f"stop {name}")
        self._installation.stop(name)

    def calm(self) -> None:
        """The end of all faults: everything runs or will soon."""
        self._wrong_at = self._loop.time()
        self._weather.calm()
        self._nats.dies_in_rollup = False
        self._nats.network.cut_off.clear()
        if not self._nats.up:
            self._nats.start()
        for process in self._installation.running.values():
            process.crash_at = None
        self._note("no more faults")
