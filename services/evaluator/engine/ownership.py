"""Which evaluator of a machine owns an engine endpoint: one at a time, or two engines would share a device."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TextIO

from services.errors import UnavailableError, UnsupportedError
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import EngineOptions
from services.evaluator.engine import process_table
from services.evaluator.engine.process import folder

log = logging.getLogger(__name__)


class Ownership:
    """The engine endpoints of this process, from `claim` until `close`. The kernel frees them when the process dies."""

    def __init__(self) -> None:
        self._locks = ExitStack()

    def claim(self, endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
        """The endpoints except the engines that another evaluator of this state directory owns.

        Ends first what an earlier owner left running. Raises UnsupportedError where the system is not Linux,
        UnavailableError when what was left does not end or the state directory cannot be written.
        """
        return tuple(
            endpoint for endpoint in endpoints if endpoint.engine is None or self._claimed(endpoint, endpoint.engine)
        )

    def close(self) -> None:
        self._locks.close()

    def _claimed(self, endpoint: Endpoint, options: EngineOptions) -> bool:
        if not hasattr(os, "pidfd_open"):
            raise UnsupportedError(
                f"{endpoint.name} is of kind engine, which runs only on Linux. Remove it on this machine."
            )
        records = folder(options, endpoint.name)
        try:
            records.mkdir(parents=True, exist_ok=True)
            lock = self._locks.enter_context((records / "lock").open("a+"))
        except OSError as error:
            raise UnavailableError(
                f"Cannot write to {records}: {error.strerror}. Set TOUCHSTONE_STATE_DIR to a folder that the "
                "evaluator can write to."
            ) from error
        if not _locked(lock):
            log.warning(
                "%s is left out: another evaluator with this state directory runs its engine. Give each evaluator "
                "on a machine its own TOUCHSTONE_STATE_DIR and its own GPU.",
                endpoint.name,
            )
            return False
        if not process_table.end_left(records):
            raise UnavailableError(
                f"An engine that an earlier evaluator of {endpoint.name} started does not stop. Kill the processes "
                f"listed in {records}, then start again."
            )
        return True


def _locked(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
