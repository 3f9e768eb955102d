"""Processes as /proc shows them, and ending exactly those: by pid and start time, never by name. Standard library only.

A process is named by its pid together with its start time, as pids are given out again. A signal goes through a pidfd
that is opened first and checked after, so that it cannot reach another process.

The record of a start says what a later run needs to end the processes that were left. The keeper writes it and keeps it
up to date. A process is identified by its pid and start time, or by the start's mark in its environment. The first
misses processes started since the last look; the second misses those that have overwritten their environment, as
programs that set their title do.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "TOUCHSTONE_ENGINE"
"""Variable in the environment of an engine and all that it starts; its value is unique to one start."""
_PROC = Path("/proc")

END_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """`started` is in clock ticks since boot."""

    pid: int
    started: int
    parent: int
    zombie: bool


def process(pid: int) -> Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command's name is in parentheses and may hold anything, so count from the last one.
    fields = text.rpartition(")")[2].split()
    return Process(pid, started=int(fields[19]), parent=int(fields[1]), zombie=fields[0] in "ZX")


def processes() -> list[Process]:
    found = (process(int(entry)) for entry in os.listdir(_PROC) if entry.isdigit())
    return [one for one in found if one is not None]


def descendants(roots: Iterable[int]) -> list[Process]:
    """All descendants of these pids, without the pids themselves."""
    children: dict[int, list[Process]] = {}
    for one in processes():
        children.setdefault(one.parent, []).append(one)
    found: list[Process] = []
    waiting = list(roots)
    while waiting:
        for child in children.pop(waiting.pop(), ()):
            found.append(child)
            waiting.append(child.pid)
    return found


def marked(mark: str) -> list[Process]:
    """Processes that carry this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    return [one for one in processes() if not one.zombie and wanted in _environment(one.pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def send(target: Process, number: signal.Signals) -> None:
    """Sends a signal to exactly this process; to none if it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(target.pid)
        try:
            now = process(target.pid)
            if now is not None and now.started == target.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def end_all(find: Callable[[], list[Process]], timeout_s: float) -> bool:
    """Sends SIGKILL to all that `find` finds, again and again until none is alive; False when time runs out.

    Repeats, as a process may have started another one between the look and the signal.
    """
    deadline = time.monotonic() + timeout_s
    while alive := [one for one in find() if not one.zombie]:
        if time.monotonic() > deadline:
            return False
        for one in alive:
            send(one, signal.SIGKILL)
        time.sleep(0.01)
    return True


def boot_id() -> str:
    """Changes when the machine restarts, which also changes every pid."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def write_record(path: Path, mark: str, known: list[Process]) -> None:
    """A record that cannot be written must not stop an engine: the parent-death signal is the first protection."""
    fresh = path.with_suffix(".new")
    content = {"boot": boot_id(), "mark": mark, "processes": [[one.pid, one.started] for one in known]}
    with suppress(OSError):
        fresh.write_text(json.dumps(content))
        fresh.replace(path)


def end_left(folder: Path) -> bool:
    """Ends the processes that earlier starts left, by all records in a folder; False when some do not end."""
    ended = [_end_recorded(path) for path in sorted(folder.glob("*.json"))]
    return all(ended)


def _end_recorded(path: Path) -> bool:
    """Ends all processes of a record and their descendants; False when some do not end."""
    try:
        saved = json.loads(path.read_text())
        mark, known = str(saved["mark"]), {(int(pid), int(started)) for pid, started in saved["processes"]}
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return True
    ended = True
    if saved.get("boot") == boot_id():

        def ours() -> list[Process]:
            found = {one for pid, _ in known if (one := process(pid)) is not None and (one.pid, one.started) in known}
            found.update(marked(mark))
            found.update(descendants([one.pid for one in found]))
            return list(found)

        ended = end_all(ours, END_S)
    if ended:
        path.unlink(missing_ok=True)
    return ended
