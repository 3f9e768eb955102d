"""Lines of a file, numbered, none held longer than it may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from services.results.datasets.reading.faults import RefusedError, WrongRowError

MOST_BYTES = 2 * 1024 * 1024
MOST_BLANK = 100_000
"""Blank lines, where most of the lines are: each costs as much as a short row and gives none."""
Numbered = Iterator[tuple[int, bytes | WrongRowError]]


def numbered(pieces: Iterable[bytes], most_lines: int) -> Numbered:
    """Every line from 1, with its end, or what is wrong with its bytes. Only LF ends a line; CRLF stays as it is.

    Raises RefusedError for more than `most_lines`, for too many blank ones, and for a file whose lines end in CR alone.
    """
    blank = 0
    for number, line in enumerate(_lines(pieces), start=1):
        if line is not None and line.isspace():
            blank += 1
            if blank > MOST_BLANK and 2 * blank > number:
                raise RefusedError(f"More than {MOST_BLANK:,} lines of the file are blank. Remove them.")
        if number > most_lines:
            raise RefusedError(f"The file has more than {most_lines:,} lines. Upload it in parts.")
        if line is None:
            yield number, WrongRowError(f"The line has more than {MOST_BYTES:,} bytes. Shorten it or leave it out.")
        elif number == 1 and not line.endswith(b"\n") and b"\r" in line.strip():
            raise RefusedError("The file's lines end in carriage returns alone. Save it with LF or CRLF line ends.")
        elif b"\0" in line:
            yield number, WrongRowError("The line contains NUL bytes. Remove them, and save the file as UTF-8.")
        else:
            yield number, line


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """None for a line that is too long, of which no more is held than a piece."""
    begun: list[bytes] = []
    held, over = 0, False
    for piece in pieces:
        first, *rest = piece.split(b"\n")
        if rest:
            if over or held + len(first) > MOST_BYTES:
                yield None
            else:
                begun.append(first)
                yield b"".join(begun) + b"\n"
            first = rest.pop()
            for line in rest:
                yield line + b"\n" if len(line) <= MOST_BYTES else None
            begun, held, over = [], 0, False
        held += len(first)
        if held > MOST_BYTES:
            begun, over = [], True
        elif first:
            begun.append(first)
    if over:
        yield None
    elif begun:
        yield b"".join(begun)
