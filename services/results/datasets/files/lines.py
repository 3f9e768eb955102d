"""Lines of a file, numbered, none held longer than it may be; and objects out of them: of JSON Lines, and of CSV with a
header.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from services.chat_requests import strict_json
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.words import refusals

MOST_BYTES = strict_json.MOST_LINE_BYTES
MOST_BLANK = 100_000
"""Most blank lines of a file that consists mostly of them: each costs as much as a short row."""
Numbered = Iterator[tuple[int, bytes | WrongRowError]]


def numbered(pieces: Iterable[bytes], most_lines: int) -> Numbered:
    """Every line from 1, with its line end, or what is wrong with its bytes. Only LF ends a line; CRLF stays as it is.

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
    """None for a line that is too long; only a piece of it is held."""
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


Values = Iterator[tuple[int, dict[str, Any] | WrongRowError]]
NO_ROWS = "The file has no rows. Upload a file with at least one row."
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
"""Of columns, with their names; the first one that fits is taken."""
_MOST_COLUMNS = 1000
_SAID = re.compile(r"\s*\"?sep=([,;|\t])\"?\s*$")
"""How Excel names the separator, on a line before the header."""
_LOOKED_AT = 20
"""Records that decide the separator."""
_FAULTS = {
    "new-line": "it contains a carriage return outside quotes",
    "unexpected": "a quote is never closed",
}


def json_objects(lines: Numbered) -> Values:
    """The object of every line that is not blank, with the line's number."""
    parser = strict_json.LineParser()
    for number, line in lines:
        if isinstance(line, WrongRowError):
            yield number, line
        elif line.strip():
            yield number, _json_object(line, parser)


def _json_object(line: bytes, parser: strict_json.LineParser) -> dict[str, Any] | WrongRowError:
    try:
        value = parser.parse(line)
    except WrongRowError as wrong:
        return wrong
    return value if isinstance(value, dict) else WrongRowError("The line is not a JSON object. Write it as {…}.")


def checked_header(names: list[str]) -> list[str]:
    """Names of columns. Raises RefusedError for too many and for one that occurs twice."""
    if len(names) > _MOST_COLUMNS:
        raise RefusedError(refusals.too_large("The header", len(names), _MOST_COLUMNS, "columns"))
    if names.count("") > 1:
        places = [str(place) for place, name in enumerate(names, start=1) if not name]
        raise RefusedError(
            f"The header has no name for columns {', '.join(places[:-1])} and {places[-1]}. Name or remove them."
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedError(f"The header names {quoted(twice)} twice. Give each column its own name.")
    return names


class CsvObjects:
    """Records of a file of separated values as objects of texts, with the line on which each begins. Raises
    RefusedError for an invalid header."""

    def __init__(self, lines: Numbered, separator: str = ",") -> None:
        csv.field_size_limit(MOST_BYTES)
        self._separator = separator
        self._texts = _Texts(lines)
        self._reader = csv.reader(self._texts, strict=True, delimiter=separator)
        self.header = self._header()

    def __iter__(self) -> Values:
        columns = len(self.header)
        while (record := self._record()) is not None:
            if isinstance(record, list) and len(record) != columns:
                record = WrongRowError(
                    f"The row has {len(record):,} cells and the header {columns:,}. Quote cells with "
                    f"{SEPARATORS[self._separator]}."
                )
            if isinstance(record, WrongRowError):
                yield self._texts.begun, record
            else:
                yield self._texts.begun, dict(zip(self.header, record, strict=True))

    def _header(self) -> list[str]:
        header = self._record()
        if isinstance(header, list) and _SAID.match(self._separator.join(header)):
            header = self._record()
        if header is None:
            raise RefusedError(NO_ROWS)
        if isinstance(header, WrongRowError):
            raise RefusedError(f"Line {self._texts.begun:,}, the header: {header.reason}")
        names = [name.strip() for name in header]
        if self._separator == "|" and names[0] == names[-1] == "":
            raise RefusedError("The file is a table in Markdown. Save it as CSV, without the outer bars.")
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            raise RefusedError(f"The header is one column, {quoted(names[0])}. Separate columns by commas.")
        return checked_header(names)

    def _record(self) -> list[str] | WrongRowError | None:
        """The next record that is not blank, None at the end."""
        while True:
            self._texts.begin()
            try:
                record = next(self._reader, None)
            except csv.Error as error:
                return WrongRowError(f"The row is not CSV: {_FAULTS.get(str(error).partition(' ')[0], error)}.")
            except WrongRowError as wrong:
                return wrong
            if record is None or any(map(str.strip, record)):
                return record


def separator_of(head: str) -> str:
    """What separates the columns of a table, from its first records: what a first line such as "sep=;" says, otherwise
    a separator that gives each of them the same number of cells, and more than one; or at least half of them as many
    as the header; otherwise "". Commas come first, so that a file that is right with commas is read with commas."""
    lines = [f"{line}\n" for line in head.split("\n")]
    if said := _SAID.match(next(filter(str.strip, lines), "")):
        return said[1]
    counts = {separator: _cells(lines, separator) for separator in SEPARATORS}
    tables = {separator: found for separator, found in counts.items() if found and found[0] > 1}
    for share in (1, 0.5):
        for separator, found in tables.items():
            if found.count(found[0]) >= share * len(found) and (share == 1 or len(found) > 2):
                return separator
    return ""


def _cells(lines: list[str], separator: str) -> list[int]:
    """How many cells each of the first records has; none for what is not CSV."""
    counts = []
    try:
        for record in islice(csv.reader(lines, delimiter=separator, strict=True), _LOOKED_AT):
            if any(map(str.strip, record)):
                counts.append(len(record))
    except csv.Error as error:
        # The beginning of a file may end within quotes.
        if not str(error).startswith("unexpected end"):
            return []
    return counts


class _Texts:
    """Lines for the CSV parser. Not a generator, which would end with the first error that it raises."""

    def __init__(self, lines: Numbered) -> None:
        self._lines = lines
        self._taken = 0
        self.begun = 0
        """Line on which the present record begins."""

    def begin(self) -> None:
        self.begun = self._taken = 0

    def __iter__(self) -> _Texts:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        self.begun = self.begun or number
        if isinstance(line, WrongRowError):
            raise line
        self._taken += len(line)
        if self._taken > MOST_BYTES:
            raise WrongRowError(f"The row has more than {MOST_BYTES:,} bytes. Shorten it, or close its quotes.")
        return strict_json.utf8(line)
