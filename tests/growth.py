"""How the time of work grows with its input. A ratio within one process holds on any machine; seconds don't."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_TIMES = 8
_TRIES = 6


def is_about_linear(work: Callable[[int], object], size: int) -> bool:
    """Whether work of `size` takes less than three times what linear growth from an eighth of it comes to.

    Quadratic growth comes to eight times. Tries again, as other load may have disturbed the figures.
    """
    # Each pair is measured at once, so that other load slows both.
    return any(_seconds(work, size) < 3 * _TIMES * _seconds(work, size // _TIMES) for _ in range(_TRIES))


def _seconds(work: Callable[[int], object], size: int) -> float:
    # Collecting garbage takes as long as the whole process's heap is large.
    gc.disable()
    try:
        began = time.thread_time()
        work(size)
        return time.thread_time() - began
    finally:
        gc.enable()
