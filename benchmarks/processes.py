"""CPU time and memory of the processes under test, from /proc."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def pids(state_dir: Path) -> dict[str, int]:
    """The launcher's children by name."""
    children = json.loads((state_dir / "children.json").read_text())["children"]
    return {name: int(pid) for name, (pid, _) in children.items()}


def cpu_s(pid: int) -> float:
    """User and system time so far, in seconds (the kernel counts in hundredths)."""
    # After the command's name, which may hold spaces and brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def proportional_bytes(pid: int) -> int:
    """Resident bytes, of which each process that shares a page has its part: so those of several can be added up."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


def resident_with_children(parents: Collection[int]) -> int:
    """Resident bytes of processes and their children together. Pages that some share count for each."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at.
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if int(folder.name) in parents or parent in parents:
                total += resident_bytes(int(folder.name))
    return total
