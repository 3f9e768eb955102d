"""Messages that may have broken the open database, remembered across the restart that this takes.

DuckDB reports some of its own faults with an InternalException, and is unusable from then on. The same message would
break it again after each start, so it has to be found and set aside.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

MOST_TRIES = 2
"""How often one message alone may break the database: the machine may have had a passing fault."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """Messages from `first` to `last` of a stream, of which one broke the database, `tries` times in a row."""

    first: int
    last: int
    tries: int
    reason: str

    def has(self, position: int) -> bool:
        return self.first <= position <= self.last


class Blamed:
    """What is remembered of one stream, in a file next to the database."""

    def __init__(self, folder: Path, stream: str) -> None:
        self._path = folder / f"suspects-{stream}.json"
        self.suspects: Suspects | None = None
        with suppress(OSError, ValueError, TypeError):
            self.suspects = Suspects(**json.loads(self._path.read_text()))

    def note(self, first: int, last: int, reason: str) -> None:
        """The database broke while storing these. If the disk refuses the note, only its help is lost."""
        before = self.suspects
        tries = before.tries + 1 if before is not None and (before.first, before.last) == (first, last) else 1
        self.suspects = Suspects(first, last, tries, reason)
        fresh = self._path.with_suffix(".new")
        with suppress(OSError):
            fresh.write_text(json.dumps(asdict(self.suspects)))
            os.chmod(fresh, 0o600)
            fresh.replace(self._path)

    def clear(self, position: int) -> None:
        """Everything up to here is stored or set aside."""
        if self.suspects is not None and self.suspects.last <= position:
            self.suspects = None
            with suppress(OSError):
                self._path.unlink()
