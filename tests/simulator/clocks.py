"""Time and chance of a simulated world in place of the machine's, for everything that runs in one."""

from __future__ import annotations

import datetime as datetimes
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from tests.simulator.loop import START, SimLoop


@contextmanager
def simulated(loop: SimLoop, chance: Random) -> Iterator[None]:
    """Inside, clocks are the loop's and everything random comes from `chance`."""
    state = random.getstate()
    random.seed(chance.getrandbits(64))

    def monotonic() -> float:
        return loop.time()

    def wall() -> float:
        return START + loop.time() + loop.ahead

    with ExitStack() as stack:
        for name, value in (
            ("monotonic", monotonic),
            ("perf_counter", monotonic),
            ("time", wall),
            ("monotonic_ns", lambda: int(monotonic() * 1e9)),
            ("time_ns", lambda: int(wall() * 1e9)),
        ):
            stack.enter_context(patch.object(time, name, value))
        stack.enter_context(patch.object(os, "urandom", chance.randbytes))
        stack.enter_context(patch.object(random, "_urandom", chance.randbytes))
        stack.enter_context(patch.object(random, "Random", _dice(chance)))
        for module in _tell_dates():
            stack.enter_context(patch.object(module, "datetime", _dates(wall)))
        try:
            yield
        finally:
            random.setstate(state)


def _dice(chance: Random) -> type[Random]:
    class Dice(Random):
        def __init__(self, seed: Any = None) -> None:
            # Without a seed the interpreter asks the machine, past all that can be replaced.
            super().__init__(chance.getrandbits(64) if seed is None else seed)

    return Dice


def _tell_dates() -> list[Any]:
    """Modules that read the day's time through `datetime`."""
    from services.results import internal_servicer, read_servicer

    return [internal_servicer, read_servicer]


def _dates(wall: Any) -> Any:
    class Simulated(datetimes.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetimes.datetime.fromtimestamp(wall(), tz)

    return Simulated
