"""Rows of an Excel workbook, read as its XML comes. Nothing in it is evaluated, and no entity is expanded."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any
from xml.parsers import expat

from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.files.cells import Cells, Sheets, Strings, Styles, letters
from services.results.datasets.files.decoding import Expanded
from services.results.datasets.files.lines import NO_ROWS, Values, checked_header
from services.words.refusals import counted

_STEP = 64 * 1024
_MOST_PARTS = 10_000
_SHEETS_SHOWN = 5
_TYPES = "[Content_Types].xml"
_MAIN = "spreadsheetml.sheet.main+xml"
_MACROS = "ms-excel.sheet.macroenabled.main+xml"
_DAMAGED = "The workbook is damaged or incomplete. Save it again, and upload all of it."
_AGAIN = "Save it as .xlsx, CSV or Parquet."

Handler = Callable[[str, Mapping[str, str]], None]


class WorkbookObjects:
    """Rows of the first visible sheet, or of the one that is `wanted`, as objects, by the numbers that the sheet gives
    them. The first row that is not empty names the columns. Raises RefusedError for a file that cannot be read, also
    while iterating."""

    def __init__(
        self,
        file: IO[bytes],
        size: int,
        expanded: Expanded,
        check: Callable[[], None],
        wanted: str = "",
        note_sheets: Callable[[list[str]], None] = lambda _: None,
    ) -> None:
        """`note_sheets` gets the names of the visible sheets before any of them is read."""
        self._size = size
        self._expanded = expanded
        self._check = check
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise RefusedError(_DAMAGED) from error
        self._parts = self._listed()
        book = self._book()
        sheets, targets = Sheets(), _Relations(book)
        self._all(book, sheets.start)
        self._all(posixpath.join(posixpath.dirname(book), "_rels", posixpath.basename(book) + ".rels"), targets.start)
        shown = [(name, targets.paths[relation]) for name, relation in sheets.shown if relation in targets.sheets]
        if not shown:
            raise RefusedError("The workbook has no visible sheet of cells. Show the sheet that has the rows.")
        names = [name for name, _ in shown]
        note_sheets(names)
        if wanted and wanted not in names:
            raise RefusedError(f"The workbook has no visible sheet {quoted(wanted, 40)}. {_named(names)}", "sheet")
        place = names.index(wanted) if wanted else 0
        which = "the first" if not place else f"number {place + 1}"
        self.note = f"of the sheet {quoted(names[place], 40)}" + (f", {which} of {len(shown)}" if names[1:] else "")
        self._sheet = shown[place][1]
        self.no_rows = RefusedError(
            f"The sheet {quoted(names[place], 40)} has no rows. {_named(names)}" if names[1:] else NO_ROWS, "sheet"
        )
        strings, styles = Strings(), Styles()
        if path := targets.of_kind("sharedStrings"):
            self._all(path, strings.start, strings.end, strings.text)
        if path := targets.of_kind("styles"):
            self._all(path, styles.start, styles.end)
        self._cells = Cells(strings.texts, styles.dates, sheets.from_1904)
        self._rows = self._read_rows()
        self.header, self._columns = self._names()

    def __iter__(self) -> Values:
        for number, cells in self._rows:
            try:
                yield number, self._object(number, cells)
            except WrongRowError as wrong:
                yield number, wrong

    def _object(self, number: int, cells: Mapping[int, Any]) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(self.header)
        for column, value in cells.items():
            if isinstance(value, WrongRowError):
                raise value
            if column not in self._columns:
                raise WrongRowError(
                    f"Cell {letters(column)}{number} is in a column without a name. Name the column in the first row, "
                    "or empty the cell."
                )
            row[self._columns[column]] = value
        return row

    def _names(self) -> tuple[list[str], dict[int, str]]:
        number, cells = next(self._rows, (0, {}))
        if not cells:
            raise self.no_rows
        for value in cells.values():
            if isinstance(value, WrongRowError):
                raise RefusedError(f"Row {number:,}, the header: {value.reason}")
        columns = {column: str(cells[column]).strip() for column in sorted(cells)}
        columns = {column: name for column, name in columns.items() if name}
        return checked_header(list(columns.values())), columns

    # -- the archive -----------------------------------------------------------------------------------------------

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._archive.infolist()
        if len(infos) > _MOST_PARTS:
            raise RefusedError(f"The workbook has more than {counted(_MOST_PARTS, 'part')}. {_AGAIN}")
        parts = {info.filename: info for info in infos}
        if _TYPES not in parts:
            what = "an OpenDocument file" if "mimetype" in parts else "a ZIP archive, and not an Excel workbook"
            raise RefusedError(f"The file is {what}. Upload JSON, CSV, Excel (.xlsx) or Parquet.")
        return parts

    def _book(self) -> str:
        kinds: dict[str, str] = {}

        def start(name: str, attributes: Mapping[str, str]) -> None:
            if name == "Override":
                kinds[attributes.get("ContentType", "").lower()] = attributes.get("PartName", "").lstrip("/")

        self._all(_TYPES, start)
        for kind, part in kinds.items():
            if kind.endswith((_MAIN, _MACROS)):
                return part
        raise RefusedError(f"The file is not an Excel workbook with sheets in XML. {_AGAIN}")

    def _all(self, part: str, *handlers: Any) -> None:
        for _ in self._chunks(part, *handlers):
            pass

    def _read_rows(self) -> Iterator[tuple[int, dict[int, Any]]]:
        """Rows that have a value."""
        cells = self._cells
        for _ in self._chunks(self._sheet, cells.start, cells.end, cells.text):
            yield from cells.taken()

    def _chunks(
        self,
        part: str,
        start: Handler,
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> Iterator[None]:
        """Parses a part, and pauses after each piece of it."""
        info = self._parts.get(part)
        if info is None:
            raise RefusedError(_DAMAGED)
        if info.flag_bits & 1:
            raise RefusedError("The workbook is encrypted. Save it without a password.")
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = lambda name, attributes: start(name.rpartition(":")[2], attributes)
        if end is not None:
            finish = end
            parser.EndElementHandler = lambda name: finish(name.rpartition(":")[2])
        parser.CharacterDataHandler = text
        try:
            with self._archive.open(info) as source:
                while piece := source.read(_STEP):
                    self._expanded.add(len(piece), self._size)
                    self._check()
                    parser.Parse(piece)
                    yield
                parser.Parse(b"", True)
                yield
        except expat.ExpatError as error:
            if error.code == expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]:
                raise MemoryError from error
            raise RefusedError(_DAMAGED) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError) as error:
            raise RefusedError(_DAMAGED) from error


class _Relations:
    """Which part a part of the workbook names by an id."""

    def __init__(self, part: str) -> None:
        self._folder = posixpath.dirname(part)
        self._kinds: dict[str, str] = {}
        self.sheets: set[str] = set()
        """Ids of sheets of cells: others hold charts, dialogs or macros."""
        self.paths: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "Relationship":
            return
        target = attributes.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{self._folder}/{target}")
        self.paths[attributes.get("Id", "")] = path
        kind = attributes.get("Type", "").rpartition("/")[2]
        self._kinds.setdefault(kind, path)
        if kind == "worksheet":
            self.sheets.add(attributes.get("Id", ""))

    def of_kind(self, kind: str) -> str:
        return self._kinds.get(kind, "")


def _named(names: list[str]) -> str:
    """What the sheets are called, and what to do."""
    shown = ", ".join(quoted(name, 40) for name in names[:_SHEETS_SHOWN])
    return f"Set sheet to one of: {shown}{', …' if len(names) > _SHEETS_SHOWN else ''}."


def _refuse_doctype(*_: Any) -> None:
    raise RefusedError(f"The workbook declares XML entities, which no workbook needs. {_AGAIN}")
