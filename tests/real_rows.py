"""Real rows outside the repository: a mirror of Hub data sets that `TOUCHSTONE_DATA_DIR` names."""

from __future__ import annotations

import os
from pathlib import Path

_MIRROR = os.environ.get("TOUCHSTONE_DATA_DIR", "")


def folder(name: str = "") -> Path | None:
    """The mirror's folder of a data set, or the mirror itself. None without a mirror, or where it lacks the set."""
    found = Path(_MIRROR).resolve() / name if _MIRROR else None
    return found if found is not None and found.is_dir() else None


def absent(name: str = "") -> str:
    """Why a test is skipped."""
    return f"TOUCHSTONE_DATA_DIR names no mirror with {name or 'real rows'}."
