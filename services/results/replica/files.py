"""The folder of copies. A copy is a file `<number>.duckdb`; the highest number is the newest, and usually there is only
that one. When the file was last changed says as of when it is: what it holds was the whole database then.

A copy gets its name after it has been synced to disk, and the earlier one goes after that. So at any moment there is a
whole one, if there ever was.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_COPY = re.compile(r"(\d{9})\.duckdb")
FRESH = "fresh.duckdb"
"""The copy that is being written."""


def newest(folder: Path) -> Path | None:
    """The newest copy; None without one."""
    return max(_copies(folder), default=None)


def begin(folder: Path) -> Path:
    """Where to write the next copy. Removes what an earlier one left behind. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.glob(f"{FRESH}*"):
        left.unlink()
    return folder / FRESH


def publish(folder: Path, as_of: float) -> Path:
    """Makes the written copy the newest one. `as_of` is in seconds since 1970. Raises OSError."""
    fresh, last = folder / FRESH, newest(folder)
    number = int(last.stem) + 1 if last else 1
    os.chmod(fresh, 0o600)
    os.utime(fresh, (as_of, as_of))
    _sync(fresh)
    place = folder / f"{number:09}.duckdb"
    fresh.rename(place)
    _sync(folder)
    for old in _copies(folder):
        if old != place:
            old.unlink()
    return place


def confirm(copy: Path, as_of: float) -> None:
    """Says that the database had not changed by then. Raises OSError."""
    os.utime(copy, (as_of, as_of))


def _copies(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.duckdb") if _COPY.fullmatch(path.name)]


def _sync(path: Path) -> None:
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
