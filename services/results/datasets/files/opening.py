"""Recognises by its content what holds the rows of an uploaded file, and opens it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any

from services.chat_requests.faults import RefusedError, WrongRowError
from services.results.datasets.files import documents
from services.results.datasets.files.arrays import array_objects
from services.results.datasets.files.decoding import PARQUET, ZIP, Decoded, Expanded, refuse_binary
from services.results.datasets.files.lines import NO_ROWS, CsvObjects, Values, json_objects, numbered, separator_of
from services.results.datasets.files.parquet import ParquetObjects
from services.results.datasets.files.workbook import WorkbookObjects
from services.results.datasets.frames import Limits
from services.words.refusals import counted

_HEAD_BYTES = 64 * 1024
_MOST_SPOOLED = 500_000_000
_LINES_A_ROW = 5
"""Lines that a file may have for each row, including blank ones."""
_ARRAY = re.compile(r"\[\s*(?:[\[{\"\]]|$)")
_DOCUMENT = re.compile(r"\{\s*$|\{.*[\[{,]\s*$")
"""How an object of several lines begins: its first line does not end it."""
_YAML = re.compile(r"---\s*$|- +[\"']?\w+[\"']?\s*:(\s|$)|\w+:\s*$|(description|prompts|providers|tests)\s*:\s")
_YAML_COMMENT = re.compile(r"#|%YAML|---\s*$")


_ONE_LINE = re.compile(r"\{\s*\"(?:version|data|description|prompts|providers|tests|\$schema)\"\s*:")
_ROWS_INSIDE = re.compile(r"\"(?:data|tests)\"\s*:\s*\[\s*\{")
"""An object in one line that holds its rows, as SQuAD and promptfoo write them."""
_PAGE = re.compile(r"<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)


class Container(StrEnum):
    """What holds the rows, as sentences name it."""

    JSON_LINES = "JSON Lines"
    ARRAY = "JSON array"
    DOCUMENT = "JSON object"
    YAML = "YAML"
    CSV = "CSV"
    SEMICOLONS = "CSV with semicolons"
    TABS = "TSV"
    BARS = "CSV with bars"
    PARQUET = "Parquet"
    WORKBOOK = "Excel workbook"


_BY_SEPARATOR = {",": Container.CSV, ";": Container.SEMICOLONS, "\t": Container.TABS, "|": Container.BARS}


@dataclass(slots=True)
class Opened:
    """An open file. `header` names the columns if the file does so once for all rows; `note` says which part of the
    file was read; `others` is what a document holds in addition to its rows."""

    container: Container
    values: Values
    header: list[str] | None = None
    note: str = ""
    others: dict[str, Any] = field(default_factory=dict)
    no_rows: RefusedError = field(default_factory=lambda: RefusedError(NO_ROWS))
    """Why a file without rows is refused."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The sheet of a workbook that is asked for, and what gets the names of all that are visible."""

    wanted: str
    note: Callable[[list[str]], None]


ANY_SHEET = Sheet("", lambda _: None)


def opened(
    decoded: Decoded, name: str, as_csv: bool, limits: Limits, check: Callable[[], None], sheet: Sheet = ANY_SHEET
) -> Opened:
    """The rows of a file that is called `name`. With `as_csv`, a text is a table; otherwise its content tells, and its
    name only where the content leaves it open. `check` raises when the work takes too long. Raises RefusedError."""
    pieces = iter(decoded)
    if sheet.wanted and decoded.binary != ZIP:
        raise RefusedError("Only an Excel workbook has sheets. Leave sheet out.", "sheet")
    if decoded.binary:
        file, size = _spooled(pieces, check)
        if decoded.binary == PARQUET:
            rows = ParquetObjects(file, size, limits.rows, Expanded(limits))
            return Opened(Container.PARQUET, iter(rows), rows.header)
        assert decoded.binary == ZIP
        book = WorkbookObjects(file, size, Expanded(limits), check, sheet.wanted, sheet.note)
        return Opened(Container.WORKBOOK, iter(book), book.header, book.note, no_rows=book.no_rows)
    head, pieces = _peeked(pieces)
    container = Container.CSV if as_csv else _told_by(head, name)
    match container:
        case Container.ARRAY:
            return Opened(container, array_objects(pieces))
        case Container.DOCUMENT:
            return _document(container, documents.json_document(pieces))
        case Container.YAML:
            return _document(container, documents.yaml_document(pieces, check))
        case Container.JSON_LINES:
            return Opened(container, json_objects(numbered(pieces, limits.rows * _LINES_A_ROW)))
    separator = separator_of(head) or ","
    table = CsvObjects(numbered(pieces, limits.rows * _LINES_A_ROW), separator)
    return Opened(_BY_SEPARATOR[separator], iter(table), table.header)


def _told_by(head: str, name: str) -> Container:
    """Of a text by its beginning. Raises RefusedError for a web page."""
    lines = [line.strip() for line in head.split("\n") if line.strip()]
    first = lines[0] if lines else ""
    if _PAGE.match(first):
        raise RefusedError("The file is a web page or XML. Download the data itself, and upload JSON, CSV or Excel.")
    if _ARRAY.match(first):
        return Container.ARRAY
    if first.startswith("{"):
        if len(lines) == 1 and _ONE_LINE.match(first) and _ROWS_INSIDE.search(first):
            return Container.DOCUMENT
        return Container.DOCUMENT if _DOCUMENT.match(first) and len(lines) > 1 else Container.JSON_LINES
    said = next((line for line in lines if not _YAML_COMMENT.match(line)), "")
    if first == "---" or _YAML.match(said):
        return Container.YAML
    if _names_table(name) or (not any(line.startswith("{") for line in lines) and separator_of(head)):
        return Container.CSV
    return Container.JSON_LINES


def _names_table(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix in (".csv", ".tsv")


def _document(container: Container, value: Any) -> Opened:
    rows, others = documents.rows_of(value)
    values: Values = (
        (number, row if isinstance(row, dict) else WrongRowError("The row is not an object of names and values."))
        for number, row in enumerate(rows, start=1)
    )
    return Opened(container, values, others=others)


def _peeked(pieces: Iterator[bytes]) -> tuple[str, Iterator[bytes]]:
    """The beginning as a text that ends with a line, and all pieces. Raises RefusedError for a binary file."""
    held: list[bytes] = []
    size = 0
    whole = True
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _HEAD_BYTES:
            whole = False
            break
    head = b"".join(held)[:_HEAD_BYTES]
    refuse_binary(head)
    if not whole:
        head = head[: head.rfind(b"\n") + 1] or head
    return head.decode(errors="replace"), chain(held, pieces)


def _spooled(pieces: Iterable[bytes], check: Callable[[], None]) -> tuple[IO[bytes], int]:
    """The pieces as a file without a name, as these containers are read from their ends. Its size is in bytes."""
    size = 0
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the reader of the rows keeps it open
        for piece in pieces:
            check()
            size += len(piece)
            if size > _MOST_SPOOLED:
                raise RefusedError(
                    f"A Parquet file or workbook may have at most {counted(_MOST_SPOOLED, 'byte')}. Upload it in parts."
                )
            file.write(piece)
        file.flush()
    except OSError as error:
        raise RefusedError("The file cannot be kept while it is read: the server's disk is full. Try later.") from error
    file.seek(0)
    return file, size
