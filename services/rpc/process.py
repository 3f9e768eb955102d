"""A service's process: logging, signals, exit."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from services import errors
from services.rpc.repeats import ThrottledHandler

WRONG_SETTINGS = 78
"""Exit code of a service whose settings or files are wrong, so that starting it again changes nothing (EX_CONFIG of
BSD's sysexits.h)."""
DAMAGED_FILES = 65
"""Exit code of a service whose stored files are damaged: it needs `touchstone repair` or `restore` (EX_DATAERR)."""


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Runs a service until SIGTERM or SIGINT sets the event it is given.

    A TouchstoneError ends the process with its sentence and exit code 1, an InvalidRequestError, which settings and
    configuration files raise, with WRONG_SETTINGS, and a DamagedFilesError with DAMAGED_FILES.
    """
    # What a service writes is for its own account only.
    os.umask(0o077)
    logging.basicConfig(
        handlers=[ThrottledHandler(sys.stderr)],
        level=logging.INFO,
        format="%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    logging.Formatter.converter = time.gmtime
    logging.getLogger("httpx").setLevel(logging.WARNING)

    async def supervised() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        await main(stop)

    try:
        asyncio.run(supervised())
    except errors.InvalidRequestError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        sys.exit(WRONG_SETTINGS)
    except errors.DamagedFilesError as error:
        print(f"touchstone: {error.message}", file=sys.stderr)
        sys.exit(DAMAGED_FILES)
    except errors.TouchstoneError as error:
        sys.exit(f"touchstone: {error.message}")
