"""Drawn runs of a job: slots that call an endpoint of lognormal latencies, which refuses calls in bursts (429) and may
become slower midway."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from services.scheduler.jobs.eta import Rates, Sample, TimeLeft, time_left

_FLUSH_S = 0.25
_REFUSED_S = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """A run's size and weather. `slowdown` is by how much calls take longer once the share `midway` is begun."""

    items: int
    slots: int
    median_s: float
    sigma: float = 1.0
    slowdown: float = 3.0
    midway: float = 0.5
    burst_every_s: float = 0.0
    burst_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Told:
    """What was predicted when a share of the run was done, and what came true."""

    share: float
    left: TimeLeft
    truth: float

    @property
    def covered(self) -> bool:
        return self.left.low <= self.truth <= self.left.high

    @property
    def width(self) -> float:
        """The interval's upper end over its lower one."""
        return self.left.high / self.left.low


def drawn(rng: random.Random, **fixed: float) -> Run:
    """A run of a minute to some hours on a calm endpoint."""
    while True:
        slots = int(2 ** rng.uniform(2, 6))
        items = int(10 ** rng.uniform(2.6, 3.7))
        median = 10 ** rng.uniform(-1, 0.7)
        calm = items / slots * median * math.exp(0.5)
        if 60 <= calm <= 3 * 3600 and items >= 20 * slots:
            chosen: dict[str, float] = {"burst_every_s": calm / rng.uniform(4, 10), "burst_s": rng.uniform(3, 15)}
            return Run(items, slots, median, **(chosen | fixed))


def run(world: Run, rng: random.Random, shares: Sequence[float] = (0.25, 0.5, 0.75)) -> list[Told]:
    """Lets it run on a clock that starts at 0, counted and asked once a second as the scheduler does."""
    rates = Rates()
    calls: list[tuple[float, bool]] = []
    begun = done = counted = retries = 0
    next_burst = rng.expovariate(1 / world.burst_every_s) if world.burst_every_s else math.inf
    burst_end = 0.0
    told: list[tuple[float, float, TimeLeft]] = []
    waiting = list(shares)
    tick = 0.0

    def start(now: float) -> None:
        nonlocal begun, retries, next_burst, burst_end
        while now >= next_burst:
            burst_end = next_burst + rng.uniform(0.5, 1.5) * world.burst_s
            next_burst = burst_end + rng.expovariate(1 / world.burst_every_s)
        if now < burst_end:
            retries += 1
            heapq.heappush(calls, (min(burst_end, now + rng.uniform(1, 5)) + _REFUSED_S, False))
            return
        slow = world.slowdown if begun >= world.midway * world.items else 1.0
        begun += 1
        heapq.heappush(calls, (now + slow * world.median_s * rng.lognormvariate(0, world.sigma), True))

    for _ in range(world.slots):
        start(0.0)
    now = 0.0
    flushed = 0.0
    while calls:
        now, answered = heapq.heappop(calls)
        while tick + 1 <= now:
            tick += 1
            rates.add(Sample(tick, counted, 0, retries))
            if waiting and counted >= waiting[0] * world.items:
                recent = rates.recent(tick)
                rate = (counted - recent.items) / (tick - recent.at) if recent is not None else 0.0
                left = time_left(rates, tick, counted, world.items, rate, world.slots)
                if left is not None:
                    told.append((waiting.pop(0), tick, left))
        done += answered
        if now - flushed >= _FLUSH_S or done == world.items:
            counted, flushed = done, now
        if begun < world.items:
            start(now)
    return [Told(share, left, now - at) for share, at, left in told]
