"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def _opened(part: Path, path: Path) -> BinaryIO:
    """Raises OSError with the requested name."""
    try:
        return part.open("wb")
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def unfinished(path: Path) -> Iterator[BinaryIO]:
    """A temporary file next to `path` that takes its name when the block succeeds, and is removed otherwise."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _opened(part, path) as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
