"""Stands between an evaluator and its engine, so that no engine outlives its evaluator: `python -m ….keeper`.

The evaluator writes one line of JSON (`Start`) to the keeper's input and holds it open. "stop" on a further line ends
the engine in order; the end of the input ends it at once: the kernel closes a pipe however a process dies. The keeper
is the reaper of everything that the engine starts, so workers that have left the engine's group and session are still
its descendants and end with it. If the keeper itself is killed, the kernel ends the engine, and the evaluator, or its
next run, uses the record to end the rest.

It writes one JSON object per line to its output: {"pid": …} once the engine runs, {"error": …} when it cannot be
started, {"ended": wait status} when the engine and everything it started is gone.

Standard library only, one thread: code between fork and exec is safe here, and not in an evaluator.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from services.evaluator.engine import process_table
from services.evaluator.engine.process_table import descendants, send

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 1.0
_KILL_S = 0.01
_READS = 64
"""Reads of 64 KiB each before the keeper does anything else."""
LOG_LIMIT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Start:
    """What to run. `parent` is the evaluator's pid; `log` and `record` are files' paths."""

    parent: int
    command: list[str]
    directory: str
    env: dict[str, str]
    mark: str
    log: str
    record: str
    grace_s: float

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


class _Log:
    """A file that is set aside as `….1` when it is full, so that an engine's chatter cannot fill the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._size = 0
        self._open()

    def _open(self) -> None:
        with suppress(OSError):
            self._path.touch()
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        with suppress(OSError):
            self._file = self._path.open("wb", buffering=0)
        self._size = 0

    def write(self, data: bytes) -> None:
        self._size += len(data)
        with suppress(OSError):
            if self._file is not None:
                self._file.write(data)
        if self._size > LOG_LIMIT_BYTES:
            if self._file is not None:
                self._file.close()
            self._open()


class _Keeper:
    def __init__(self, start: Start) -> None:
        self._start = start
        self._log = _Log(Path(start.log))
        self._selector = selectors.DefaultSelector()
        self._engine = 0
        self._status: int | None = None
        self._known: frozenset[tuple[int, int]] = frozenset()
        self._output = -1
        self._kill_at: float | None = None

    def run(self) -> None:
        woken, wake = os.pipe()
        self._output, into = os.pipe()
        for end in (0, woken, wake, self._output):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, self._signalled)
        self._launch(into)
        os.close(into)
        for source in (0, woken, self._output):
            self._selector.register(source, selectors.EVENT_READ)
        began, look_at = time.monotonic(), 0.0
        while True:
            for key, _ in self._selector.select(_KILL_S if self._killing else max(0.0, look_at - time.monotonic())):
                if key.fd == 0:
                    self._listen()
                elif key.fd == self._output:
                    self._copy()
                else:
                    os.read(woken, 4096)
                    look_at = 0.0
            if self._killing or time.monotonic() >= look_at:
                if self._nothing_left():
                    break
                now = time.monotonic()
                # An engine starts its workers soon after its own start.
                look_at = min(now + min(_LOOK_S, 0.05 + (now - began) / 2), self._kill_at or math.inf)
        self._copy()
        Path(self._start.record).unlink(missing_ok=True)
        _tell({"ended": self._status})

    @property
    def _killing(self) -> bool:
        """Without its main process an engine serves nobody, but its workers would still hold the memory."""
        return self._status is not None or (self._kill_at is not None and time.monotonic() >= self._kill_at)

    def _launch(self, into: int) -> None:
        keeper = os.getpid()

        def die_with_keeper() -> None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)

        start = self._start
        # Before the engine is there: its first child can then be found by the mark, however soon the keeper dies.
        process_table.write_record(Path(start.record), start.mark, [])
        try:
            engine = subprocess.Popen(
                start.command,
                cwd=start.directory,
                env=start.env,
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=into,
                start_new_session=True,
                preexec_fn=die_with_keeper,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            Path(start.record).unlink(missing_ok=True)
            _tell({"error": str(error)})
            sys.exit(0)
        self._engine = engine.pid
        # All children are waited for here.
        engine.returncode = 0
        _tell({"pid": engine.pid})

    def _signalled(self, number: int, _: object) -> None:
        if number == signal.SIGTERM:
            self._kill_at = 0.0

    def _listen(self) -> None:
        data = os.read(0, 4096)
        if not data:
            self._selector.unregister(0)
            self._kill_at = 0.0
        elif b"stop" in data and self._kill_at is None:
            self._kill_at = time.monotonic() + self._start.grace_s
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._engine, signal.SIGTERM)

    def _copy(self) -> None:
        with suppress(BlockingIOError):
            for _ in range(_READS):
                data = os.read(self._output, 65536)
                if not data:
                    if self._output in self._selector.get_map():
                        self._selector.unregister(self._output)
                    return
                self._log.write(data)

    def _nothing_left(self) -> bool:
        """Reaps, kills when it is time, keeps the record."""
        with suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == self._engine:
                    self._status = reaped[1]
        left = descendants([os.getpid()])
        if self._killing:
            for one in left:
                send(one, signal.SIGKILL)
        known = frozenset((one.pid, one.started) for one in left)
        if known != self._known:
            self._known = known
            process_table.write_record(Path(self._start.record), self._start.mark, left)
        return not left


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _tell(event: dict[str, object]) -> None:
    # The evaluator may be gone; the rest is done all the same.
    with suppress(OSError):
        os.write(1, json.dumps(event).encode() + b"\n")


def main() -> None:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        line += byte
    start = Start(**json.loads(line))
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() == start.parent:
        _Keeper(start).run()


if __name__ == "__main__":
    main()
