"""Loops and clocks for what runs in a simulated world."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from tests.simulator.clocks import simulated
from tests.simulator.loop import SimLoop

T = TypeVar("T")


@contextmanager
def sim_loop(seed: int, **bounds: Any) -> Iterator[tuple[SimLoop, Random]]:
    """A loop with its clocks; everything in it is a function of the seed."""
    chance = Random(seed)
    loop = SimLoop(chance, **bounds)
    with simulated(loop, chance):
        try:
            yield loop, chance
        finally:
            # What dead processes have to say in their end interests nobody, nor what they would still begin.
            with patch.object(sys, "unraisablehook", lambda unraisable: None), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                loop.forget()
                loop.close()


def run(seed: int, main: Callable[[SimLoop, Random], Coroutine[Any, Any, T]], **bounds: Any) -> T:
    with sim_loop(seed, **bounds) as (loop, chance):
        return loop.run_until_complete(main(loop, chance))
