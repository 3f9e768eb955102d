"""A service's process: logging, signals, exit."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, TextIO

from services import errors
from services.telemetry import logs

WINDOW_S = 10.0
MOST_LINES = 50
"""Lines of one place in the code in one window."""

WRONG_SETTINGS = 78
"""Exit code of a service whose settings or files are wrong, so that starting it again changes nothing (EX_CONFIG of
BSD's sysexits.h)."""
DAMAGED_FILES = 65
"""Exit code of a service whose stored files are damaged: it needs `touchstone repair` or `restore` (EX_DATAERR)."""


@dataclass(slots=True)
class _Window:
    ends: float
    last: logging.LogRecord
    written: int = 0
    left_out: int = 0


class ThrottledHandler(logging.StreamHandler[TextIO]):
    """Writes at most MOST_LINES per WINDOW_S of each place in the code, then the number of further ones.

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
                place = last.name, last.levelno, last.pathname, last.lineno
                told = logging.LogRecord(*place, words, None, last.exc_info)
                told.__dict__["job_id"] = getattr(last, "job_id", "")
                super().emit(told)


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs a service until SIGTERM or SIGINT sets the event it is given.

    A TouchstoneError ends the process with its sentence and exit code 1, an InvalidRequestError, which settings and
    configuration files raise, with WRONG_SETTINGS, and a DamagedFilesError with DAMAGED_FILES.
    """
    # Files of a service are readable only for its own account.
    os.umask(0o077)

    async def supervised() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        await main(stop)

    try:
        handler = ThrottledHandler(sys.stderr)
        handler.setFormatter(logs.formatter())
        logging.basicConfig(handlers=[handler], level=logging.INFO)
        logging.getLogger("httpx").setLevel(logging.WARNING)
        asyncio.run(supervised())
    except errors.InvalidRequestError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        sys.exit(WRONG_SETTINGS)
    except errors.DamagedFilesError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        sys.exit(DAMAGED_FILES)
    except errors.TouchstoneError as error:
        sys.exit(f"touchstone: {error.message}")
