"""Processes that read uploads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO

from services.results.datasets.frames import Limits, options
from tests.unit.results.uploads import Outcome, outcome
from touchstone.v1.dataset_pb2 import DatasetOptions

CHILD = [sys.executable, "-m", "services.results.datasets.reading"]
# A process counts the memory of the one that it was forked from as its own: this one in between is small.
MEASURED = [
    sys.executable,
    "-c",
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)",
    *CHILD,
]


@dataclass
class Run:
    outcome: Outcome
    megabytes: float


def run(pieces: Iterable[bytes], *, limits: Limits | None = None) -> Run:
    """Of a file that is sent piece by piece; the frames are taken while it is."""
    child = subprocess.Popen(MEASURED, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    feeder = Thread(target=feed, args=(child.stdin, options(limits or Limits(), DatasetOptions()), pieces))
    feeder.start()
    child.stdin = None
    output, errors = child.communicate()
    feeder.join()
    assert child.returncode == 0, errors.decode()
    return Run(outcome(output), int(errors) / 1024)


def feed(stdin: IO[bytes], start: bytes, pieces: Iterable[bytes]) -> None:
    with suppress(BrokenPipeError), stdin:
        stdin.write(start)
        for piece in pieces:
            stdin.write(piece)
