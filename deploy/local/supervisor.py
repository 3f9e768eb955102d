"""Keeps processes running: starts them, waits until they are ready, restarts those that die or no longer answer, stops
all in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.local.pulse import Verdict
from deploy.local.settings import SILENT_S, LaunchError
from deploy.local.state import StateDir
from deploy.local.watching import Look, watch
from services.rpc import DAMAGED_FILES, WRONG_SETTINGS

CHILD = Path(__file__).with_name("child.py")
FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 10.0
STEADY_S = 10.0
"""A process that ran this long gets the first backoff again."""
MOST_EARLY_EXITS = 5
EARLY_S = 20.0
READY_TIMEOUT_S = 90.0
PROBE_EVERY_S = 0.05
LOG_LINES = 15

Probe = Callable[[], Awaitable[bool]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Process:
    """A process to keep running.

    `ready` says whether it does its work. When all stop, the highest `stage` goes first, and each process has `grace_s`
    seconds to end. `look` checks its health while it runs; without it only its end is noticed. `before` runs before
    each start.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Probe
    stage: int = 0
    grace_s: float = 5.0
    look: Look | None = None
    before: Callable[[], None] = lambda: None


class Supervisor:
    """Runs processes, each in its own session with its own log; all die with this process, even when it is killed."""

    def __init__(
        self,
        state: StateDir,
        say: Say,
        working_dir: Path,
        *,
        silent_s: float = SILENT_S,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """`silent_s` is how long an idle process may leave checks unanswered. While the disk has no room (`has_room`),
        processes that cannot start do not end the launch."""
        self._state = state
        self._say = say
        self._working_dir = working_dir
        self._silent_s, self._has_room = silent_s, has_room
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._processes: dict[str, Process] = {}
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._started: set[str] = set()
        self._stopping: set[str] = set()

    def pid(self, name: str) -> int | None:
        running = self._running.get(name)
        return running.pid if running else None

    def begin(self, processes: Sequence[Process]) -> None:
        """Starts these at once, except those that have begun, and keeps them running."""
        for process in processes:
            if process.name in self._processes:
                continue
            self._processes[process.name] = process
            self._keepers[process.name] = asyncio.create_task(self._keep(process))
            if process.look is not None:
                self._watchers[process.name] = asyncio.create_task(self._watch(process, process.look))

    async def start(self, processes: Sequence[Process]) -> None:
        """Starts these and returns when all are ready.

        Raises LaunchError with the end of the log when a process ends five times within 20 s, or is not ready in 90 s.
        When a process reports wrong settings, raises it at once with the log's last sentence.
        """
        self.begin(processes)
        waits = [asyncio.create_task(self._wait_ready(process)) for process in processes]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()

    async def watch(self) -> None:
        """Runs until a failure that a restart cannot fix, and raises it."""
        done, _ = await asyncio.wait(self._keepers.values(), return_when=asyncio.FIRST_COMPLETED)
        for keeper in done:
            keeper.result()

    async def stop(self) -> None:
        """Stops all, the highest stage first."""
        for stage in sorted({process.stage for process in self._processes.values()}, reverse=True):
            names = [process.name for process in self._processes.values() if process.stage == stage]
            await asyncio.gather(*(self._stop(name) for name in names))

    async def _stop(self, name: str) -> None:
        keeper = self._keepers.get(name)
        if keeper is None:
            return
        self._stopping.add(name)
        self._unwatch(name)
        running = self._running.get(name)
        if running is None:
            keeper.cancel()
        else:
            with suppress(ProcessLookupError):
                running.send_signal(signal.SIGTERM)
            done, _ = await asyncio.wait([keeper], timeout=self._processes[name].grace_s)
            if not done:
                self._say(f"{name} did not stop within {self._processes[name].grace_s:g} s; killing it")
                _kill_group(running.pid)
        await asyncio.wait([keeper], timeout=5)

    async def kill(self) -> None:
        """Ends all processes at once, without grace."""
        self._stopping.update(self._processes)
        for name in self._processes:
            self._unwatch(name)
        for running in self._running.values():
            _kill_group(running.pid)
        for name, keeper in self._keepers.items():
            if name not in self._running:
                keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers.values(), timeout=5)

    async def _wait_ready(self, process: Process) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        keeper = self._keepers[process.name]
        while process.name not in self._running or not await process.ready():
            if keeper.done():
                keeper.result()
            if not self._has_room():
                deadline = time.monotonic() + READY_TIMEOUT_S
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"{process.name} is not ready after {READY_TIMEOUT_S:g} s.{self._last_lines(process)}"
                )
            await asyncio.sleep(PROBE_EVERY_S)
        self._started.add(process.name)

    async def _keep(self, process: Process) -> None:
        backoff = FIRST_BACKOFF_S
        exits: list[float] = []
        while True:
            began = time.monotonic()
            ending, code = await self._run(process)
            if process.name in self._stopping:
                return
            now = time.monotonic()
            if code in (WRONG_SETTINGS, DAMAGED_FILES):
                ending = f"cannot start: {self._last_sentence(process)}"
                # Wrong settings may be corrected while the others run; damaged files need everything stopped.
                if process.name not in self._started or code == DAMAGED_FILES:
                    raise LaunchError(f"{process.name} {ending}", code)
            if process.name not in self._started and self._has_room():
                exits = [*(at for at in exits if now - at < EARLY_S), now]
                if len(exits) >= MOST_EARLY_EXITS:
                    what, lines = f"{ending} {len(exits)} times", self._last_lines(process)
                    raise LaunchError(f"{process.name} cannot start: it {what}.{lines}")
            if now - began > STEADY_S:
                backoff = FIRST_BACKOFF_S
            self._say(f"{process.name} {ending}; starting it again in {backoff:g} s")
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)

    async def _watch(self, process: Process, look: Look) -> None:
        async def end(pid: int, verdict: Verdict) -> None:
            self._say(f"{process.name} {verdict.reason}; ending it")
            running = self._running[process.name]
            if not verdict.frozen:
                with suppress(ProcessLookupError):
                    running.send_signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    await asyncio.wait_for(running.wait(), process.grace_s)
            if self.pid(process.name) == pid:
                _kill_group(pid)

        await watch(look, self._silent_s, lambda: self.pid(process.name), end, self._has_room)

    def _unwatch(self, name: str) -> None:
        if watcher := self._watchers.pop(name, None):
            watcher.cancel()

    async def _run(self, process: Process) -> tuple[str, int | None]:
        """Runs it once; returns in words how it ended, and its exit code if it started."""
        try:
            process.before()
            with self._state.log(process.name).open("ab") as log:
                # -I and -S: the shim needs nothing installed and starts in 10 ms.
                running = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(CHILD), str(os.getpid()), *process.command),
                    env=dict(process.environment),
                    cwd=self._working_dir,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:  # for instance a full disk, which may pass
            return f"could not be started ({error})", None
        self._running[process.name] = running
        try:
            self._state.record(process.name, running.pid)
            code = await running.wait()
            return _ending(code), code
        finally:
            # Also ends what it started and left behind, before its successor starts.
            _kill_group(running.pid)
            self._running.pop(process.name, None)
            self._state.forget(process.name)

    def _last_lines(self, process: Process) -> str:
        path = self._state.log(process.name)
        lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:] if path.exists() else []
        return "\n".join([f" The end of {path}:", *(f"  {line}" for line in lines)])

    def _last_sentence(self, process: Process) -> str:
        """What a service logs before it ends on its own."""
        lines = self._state.log(process.name).read_text(errors="replace").splitlines()
        return lines[-1].removeprefix("touchstone: ") if lines else "its settings are wrong."


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was terminated by {signal.Signals(-code).name}"
    except ValueError:
        return f"was terminated by signal {-code}"
