"""A service's log on a stream, where a line that comes again and again is counted and not written."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TextIO

WINDOW_S = 10.0
MOST_LINES = 50
"""Lines of one place in the code in one window."""


@dataclass(slots=True)
class _Window:
    ends: float
    last: logging.LogRecord
    written: int = 0
    left_out: int = 0


class ThrottledHandler(logging.StreamHandler[TextIO]):
    """Writes at most MOST_LINES per WINDOW_S of each place in the code, then how many it left out.

    The number is written with the next line of any kind after the window, or at the end of the process.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._windows: dict[Hashable, _Window] = {}

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        self._tell(now)
        place = (record.name, record.levelno, record.pathname, record.lineno)
        window = self._windows.setdefault(place, _Window(now + WINDOW_S, record))
        window.last = record
        if window.written < MOST_LINES:
            window.written += 1
            super().emit(record)
        else:
            window.left_out += 1

    def close(self) -> None:
        self._tell(float("inf"))
        super().close()

    def _tell(self, now: float) -> None:
        """Ends windows that are over."""
        for place in [place for place, window in self._windows.items() if now >= window.ends]:
            window = self._windows.pop(place)
            if window.left_out:
                last = window.last
                words = f"{window.left_out:,} more lines like this within {WINDOW_S:g} s; the last: {last.getMessage()}"
                super().emit(
                    logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, words, None, last.exc_info)
                )
