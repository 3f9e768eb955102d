"""What the launcher prints: lines, a live block where the output is a terminal, tables and interval bars."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

BAR_WIDTH = 32
SCALE = "0" + "┄" * (BAR_WIDTH - 2) + "1"
"""The heading above interval bars."""
_UP_AND_CLEAR = "\x1b[1A\x1b[2K"


class Terminal:
    """Lines above, and below them a block that is redrawn in place. Without a terminal the block is left out.

    A reader that went away (a closed window, `| head`) only stops the output.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self.live = output.isatty() and os.environ.get("TERM") != "dumb"
        self._block: list[str] = []

    def say(self, line: str = "") -> None:
        block = self._block
        with suppress(OSError):
            self._erase()
            print(line, file=self._output)
            self._draw(block)

    def show(self, block: Sequence[str]) -> None:
        """Replaces the last block with this one."""
        if self.live:
            with suppress(OSError):
                self._erase()
                self._draw(block)

    def keep(self) -> None:
        """Leaves the block as it is; later output goes below it."""
        self._block = []

    def _erase(self) -> None:
        self._output.write(_UP_AND_CLEAR * len(self._block))
        self._block = []

    def _draw(self, block: Sequence[str]) -> None:
        # A wrapped line would take two rows, so the count would be wrong.
        width = shutil.get_terminal_size().columns - 1
        self._block = [line[:width] for line in block]
        for line in self._block:
            print(line, file=self._output)
        self._output.flush()


def progress_bar(share: float, width: int = 24) -> str:
    """A bar for a share from 0 to 1, in eighths of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + " ▏▎▍▌▋▊▉"[rest] * (rest > 0)).ljust(width, "░")


def interval_bar(low: float, high: float, value: float) -> str:
    """An interval on the scale from 0 to 1, with its value as a dot."""

    def column(at: float) -> int:
        return round(min(max(at, 0.0), 1.0) * (BAR_WIDTH - 1))

    cells = [" "] * BAR_WIDTH
    for at in range(column(low), column(high) + 1):
        cells[at] = "─"
    cells[column(low)], cells[column(high)] = "├", "┤"
    cells[column(value)] = "●"
    return "".join(cells).rstrip()


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Lines with aligned columns; those in `right` are flush right. The first row is the heading."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def duration(seconds: float) -> str:
    """12.3 s, or 4 min 5 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
