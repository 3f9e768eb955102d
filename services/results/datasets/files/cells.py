"""What the parts of an Excel workbook say, element by element: its sheets, texts, styles and cells."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from services.chat_requests import strict_json
from services.chat_requests.faults import WrongRowError, quoted

_DATES = frozenset((*range(14, 23), *range(27, 37), 45, 46, 47, *range(50, 59)))
"""Numbers of Excel's own formats that show a date or a time."""
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_TIMED = re.compile(r"[dmyhs]", re.IGNORECASE)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_PLACE = re.compile(r"([A-Za-z]{1,3})[0-9]+")
_MOST_COLUMN = 16_384
_LEAP_DAY = 60
"""Excel counts a 29 February 1900, which was none: earlier days are one off."""
_EXACT = 1e15


class Sheets:
    """Of the workbook: visible sheets as (name, id of the relation), and the first year of its dates."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []
        self.from_1904 = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "workbookPr":
            self.from_1904 = attributes.get("date1904") in ("1", "true")
        elif name == "sheet" and attributes.get("state", "visible") == "visible":
            relation = next((value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), "")
            self.shown.append((attributes.get("name", ""), relation))


class _Text:
    """A text of runs, without the pronunciation that may follow them."""

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._open = self._aside = False

    def start(self, name: str) -> None:
        self._aside = self._aside or name == "rPh"
        self._open = name == "t" and not self._aside

    def end(self, name: str) -> None:
        self._aside = self._aside and name != "rPh"
        self._open = False

    def add(self, text: str) -> None:
        if self._open:
            self._runs.append(text)

    def taken(self) -> str:
        text, self._runs = "".join(self._runs), []
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


class _Texts:
    """Texts by their numbers. In one piece, millions of short ones take a third of the memory that Python's own do."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])

    def append(self, text: str) -> None:
        # A workbook may have half a character, which the reader of its cell names.
        self._bytes += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))

    def __getitem__(self, number: int) -> str:
        """Raises IndexError."""
        if number < 0:
            raise IndexError(number)
        start, end = self._ends[number], self._ends[number + 1]
        return self._bytes[start:end].decode("utf-8", "surrogatepass")


class Strings:
    """The texts that cells share."""

    def __init__(self) -> None:
        self.texts = _Texts()
        self._text = _Text()

    def start(self, name: str, _: Mapping[str, str]) -> None:
        self._text.start(name)

    def end(self, name: str) -> None:
        self._text.end(name)
        if name == "si":
            self.texts.append(self._text.taken())

    def text(self, text: str) -> None:
        self._text.add(text)


class Styles:
    """Which styles of cells show a number as a date."""

    def __init__(self) -> None:
        self.dates: list[bool] = []
        self._formats: dict[str, bool] = {}
        self._inside = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            code = _LITERAL.sub("", attributes.get("formatCode", ""))
            self._formats[attributes.get("numFmtId", "")] = bool(_TIMED.search(code))
        elif name == "cellXfs":
            self._inside = True
        elif name == "xf" and self._inside:
            number = attributes.get("numFmtId", "0")
            self.dates.append(self._formats.get(number, number.isdecimal() and int(number) in _DATES))

    def end(self, name: str) -> None:
        self._inside = self._inside and name != "cellXfs"


class Cells:
    """The cells of a sheet as rows of values by column, from 0. What is wrong with a cell takes its place."""

    def __init__(self, texts: _Texts, dates: Sequence[bool], from_1904: bool) -> None:
        self._texts, self._dates = texts, dates
        self._first = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30)
        self._from_1904 = from_1904
        self._rows: list[tuple[int, dict[int, Any]]] = []
        self._row: dict[int, Any] = {}
        self._number = 0
        self._column = -1
        self._kind = self._style = ""
        self._value: list[str] = []
        self._inline = _Text()
        self._in_value = self._formula = False

    def taken(self) -> list[tuple[int, dict[int, Any]]]:
        """Rows that ended since the last call and have a value."""
        rows, self._rows = self._rows, []
        return rows

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "row":
            told = attributes.get("r", "")
            self._number = int(told) if told.isdecimal() and len(told) < 8 else self._number + 1
            self._row, self._column = {}, -1
        elif name == "c":
            self._column = _column(attributes.get("r", ""), self._column + 1)
            self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._value, self._formula = [], False
        elif name == "v":
            self._in_value = True
        elif name == "f":
            self._formula = True
        else:
            self._inline.start(name)

    def text(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)
        else:
            self._inline.add(text)

    def end(self, name: str) -> None:
        if name == "v":
            self._in_value = False
        elif name == "c":
            value = self._read("".join(self._value), self._inline.taken())
            if value is not None and value != "" and 0 <= self._column < _MOST_COLUMN:
                self._row[self._column] = value
        elif name == "row":
            if self._row:
                self._rows.append((self._number, self._row))
        else:
            self._inline.end(name)

    @property
    def _here(self) -> str:
        return f"{letters(self._column)}{self._number}"

    def _read(self, stored: str, inline: str) -> Any:
        try:
            return self._valued(stored, inline)
        except WrongRowError as wrong:
            return wrong
        except (ValueError, OverflowError, IndexError):
            return WrongRowError(f"Cell {self._here} holds {quoted(stored)}, which cannot be read. Enter it again.")

    def _valued(self, stored: str, inline: str) -> Any:
        if self._formula and not stored and self._kind != "str":
            raise WrongRowError(
                f"Cell {self._here} holds a formula without its value. Open the file in a spreadsheet program and save "
                "it, or replace formulas with values."
            )
        if self._kind == "inlineStr":
            return _checked(inline)
        if not stored:
            return None
        if self._kind == "s":
            return _checked(self._texts[int(stored)])
        if self._kind in ("str", "d"):
            return _checked(stored)
        if self._kind == "b":
            return stored.strip() == "1"
        if self._kind == "e":
            raise WrongRowError(
                f"Cell {self._here} holds the error {quoted(stored, 20)}. Correct it, or empty the cell."
            )
        return self._number_of(stored)

    def _number_of(self, stored: str) -> Any:
        value = strict_json.finite(stored)
        if self._style.isdecimal() and self._dates[int(self._style)]:
            return self._moment(value)
        return int(value) if value.is_integer() and abs(value) < _EXACT else value

    def _moment(self, days: float) -> str:
        if 0 < days < _LEAP_DAY and not self._from_1904:
            days += 1
        found = self._first + timedelta(seconds=round(days * 86_400))
        if days < 1:
            return found.time().isoformat()
        return (found.date() if days == int(days) else found).isoformat()


def letters(column: int) -> str:
    """ "A" of 0, "AA" of 26."""
    text = ""
    column += 1
    while column:
        column, place = divmod(column - 1, 26)
        text = chr(ord("A") + place) + text
    return text


def _checked(text: str) -> str:
    strict_json.check_text(text)
    return text


def _column(place: str, otherwise: int) -> int:
    if (found := _PLACE.fullmatch(place)) is None:
        return otherwise
    number = 0
    for letter in found[1].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1
