"""File names as senders give them, made fit to be shown."""

from __future__ import annotations

import re

MOST_CHARACTERS = 200
_MOST_ENDING = 20


def clean(name: str, otherwise: str) -> str:
    """The name without folders and without characters that cannot be seen, its ending kept where it is cut;
    `otherwise` where nothing is left."""
    last = re.split(r"[\\/]", name)[-1]
    seen = "".join(char for char in last if char.isprintable()).strip()
    if not seen.strip("."):
        return otherwise
    if len(seen) <= MOST_CHARACTERS:
        return seen
    _, point, ending = seen.rpartition(".")
    kept = f".{ending}" if point and len(ending) <= _MOST_ENDING else ""
    return seen[: MOST_CHARACTERS - len(kept)] + kept
