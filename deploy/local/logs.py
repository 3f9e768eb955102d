"""Setting a log aside while its process continues to append to it."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_COLLAPSE_RANGE = 0x08
"""FALLOC_FL_COLLAPSE_RANGE of linux/falloc.h."""


def set_aside(log: Path, aside: Path) -> None:
    """Moves what a log holds into `aside`. Raises OSError, with the log as it was.

    On ext4 and XFS no line is lost, as only whole, copied blocks are removed from the log: lines written meanwhile
    stay. A line may begin in one file and end in the other. Other file systems can only empty it, which loses lines
    written in the instant after the last look.
    """
    with log.open("rb+") as source, aside.open("wb") as copy:
        shutil.copyfileobj(source, copy)
        blocks = _whole_blocks(source.fileno(), copy.tell())
        copy.flush()
        if blocks and _drop_head(source.fileno(), blocks):
            copy.truncate(blocks)
            return
        while more := source.read():
            copy.write(more)
            copy.flush()
        os.truncate(source.fileno(), 0)


def _whole_blocks(file: int, size: int) -> int:
    """Bytes of the whole blocks before the last one of this many bytes: a file keeps at least one block."""
    block = os.fstatvfs(file).f_bsize
    return (size - 1) // block * block


def _drop_head(file: int, size: int) -> bool:
    """Removes the first bytes of a file in one step; false if its file system cannot."""
    try:
        fallocate = ctypes.CDLL(None).fallocate
    except (OSError, AttributeError):
        return False
    offset = ctypes.c_long
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, offset, offset)
    return bool(fallocate(file, _COLLAPSE_RANGE, 0, size) == 0)
