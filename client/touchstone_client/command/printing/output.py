"""Prints reports: tables in colour on a terminal, plain ones elsewhere, or CSV, JSON and Markdown for programs."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from touchstone_client.command.printing import marks
from touchstone_client.command.printing.figures import MISSING, text
from touchstone_client.command.printing.marks import Cell, Part

FORMATS = ("table", "json", "jsonl", "csv", "markdown")
STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "better": "green",
    "worse": "red",
    "equivalent": "cyan",
    "reachable": "green",
    "down": "red",
    "limited": "yellow",
    "warning": "yellow",
    "error": "red",
}
"""Colours of words, wherever they are a cell."""
_GAP = 3
"""Between two columns of a coloured table."""
_EDGE = 1
"""What it takes in addition to its columns, each with its gap."""
_FOLDED = 24
"""Least width of a text that may fold."""


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is the key in JSON and CSV; `title` the heading of tables, empty to leave the column out of them; `show`
    makes a cell, in parts if some of it is marked."""

    name: str
    title: str
    show: Callable[[Any], str | Cell] = text
    right: bool = False
    data: bool = True
    """Whether it is part of JSON and CSV."""
    extra: bool = False
    """Whether it is left out first on a narrow terminal."""
    key: bool = False
    """Whether it is left out last there."""
    fold: bool = False
    """Whether it may take several lines there."""
    whole: bool = False
    """Whether it keeps line breaks and tabs."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values, one per column."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""

    def records(self) -> list[dict[str, Any]]:
        return [
            {column.name: value for column, value in zip(self.columns, row, strict=True) if column.data}
            for row in self.rows
        ]

    def seen(self) -> tuple[list[Column], list[list[Cell]]]:
        """Columns and cells as people see them, without columns that are empty in every row.

        Models' texts may hold control characters, which terminals would obey.
        """
        headed = [place for place, column in enumerate(self.columns) if column.title]
        cells = {place: [_seen(self.columns[place], row[place]) for row in self.rows] for place in headed}
        filled = [place for place in headed if not self.rows or {*map(marks.plain, cells[place])} - {"", MISSING}]
        return (
            [self.columns[place] for place in filled],
            [[cells[place][row] for place in filled] for row in range(len(self.rows))],
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a command prints. CSV and JSON Lines are `csv`, or the first table without one; JSON is `document`, or that
    table's rows."""

    tables: Sequence[Table]
    facts: Mapping[str, str] | None = None
    notes: Sequence[str] = ()
    document: Any = None
    heading: str = ""
    csv: Table | None = None


def show(report: Report, format: str, file: TextIO | None = None) -> None:
    """Prints to stdout, or to `file`."""
    file = file or sys.stdout
    if format == "json":
        value = report.tables[0].records() if report.document is None else report.document
        print(json.dumps(value, indent=2, ensure_ascii=False), file=file)
    elif format == "jsonl":
        for record in (report.csv or report.tables[0]).records():
            print(json.dumps(record, ensure_ascii=False), file=file)
    elif format == "csv":
        _csv(report.csv or report.tables[0], file)
    elif format == "markdown":
        print(markdown(report), file=file)
    elif coloured(file):
        _coloured(report, file)
    else:
        print(plain(report), file=file)


def coloured(file: TextIO) -> bool:
    """Whether it is a terminal that allows colour (no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _seen(column: Column, value: Any) -> Cell:
    shown = column.show(value)
    parts = [Part(shown)] if isinstance(shown, str) else shown
    kept = "\n\t" if column.whole else ""
    return [part._replace(text=_printable(part.text, kept)) for part in parts]


def _printable(text: str, kept: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() or c in kept else "�" for c in text)


def _csv(table: Table, file: TextIO) -> None:
    names = [column.name for column in table.columns if column.data]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in table.records())


def _cell(value: Any) -> Any:
    """A CSV cell. A text that a spreadsheet would take for a formula gets an apostrophe, as in exports."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def markdown(report: Report) -> str:
    blocks = [f"# {report.heading}"] if report.heading else []
    if report.facts:
        blocks.append("\n".join(f"- {name}: {_markdown(value)}" for name, value in report.facts.items()))
    for table in report.tables:
        columns, cells = table.seen()
        lines = [
            [column.title for column in columns],
            ["---:" if column.right else "---" for column in columns],
            *([marks.markdown(cell) for cell in row] for row in cells),
        ]
        if table.title:
            blocks.append(f"## {table.title}")
        blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if report.notes:
        blocks.append("\n".join(f"- {_markdown(note)}" for note in report.notes))
    return "\n\n".join(blocks)


def _markdown(text: str) -> str:
    return marks.markdown([Part(text)])


def plain(report: Report) -> str:
    """Aligned text without colour or frames."""
    blocks = [report.heading] if report.heading else []
    if report.facts:
        wide = max(map(len, report.facts))
        blocks.append("\n".join(f"{name:<{wide}}  {value}" for name, value in report.facts.items()))
    for table in report.tables:
        columns, cells = table.seen()
        rows = [[column.title for column in columns], *([marks.plain(cell) for cell in row] for row in cells)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]
        # Further lines of a text are below its first one.
        starts = [sum(widths[:place]) + 2 * place for place in range(len(columns))]
        lines = [
            "  ".join(
                f"{cell:>{width}}" if column.right else f"{cell:<{width}}".replace("\n", "\n" + " " * start)
                for cell, column, width, start in zip(row, columns, widths, starts, strict=True)
            ).rstrip()
            for row in rows
        ]
        blocks.append("\n".join([table.title, *lines] if table.title else lines))
    blocks += ["\n".join(report.notes)] if report.notes else []
    return "\n\n".join(blocks)


def _coloured(report: Report, file: TextIO) -> None:
    console = Console(file=file, highlight=False)
    if report.heading:
        console.print(Text(report.heading, style="bold"))
    for name, value in (report.facts or {}).items():
        console.print(Text.assemble((f"{name}  ", "dim"), (value, STYLES.get(value, ""))))
    left_out = False
    for table in report.tables:
        made = RichTable(title=table.title or None, title_justify="left", box=box.SIMPLE_HEAD, header_style="dim")
        columns, cells = table.seen()
        places = _fitting(columns, cells, console.width)
        left_out |= len(places) < len(columns)
        for column in (columns[place] for place in places):
            made.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.fold)
        for row in cells:
            made.add_row(*(marks.coloured(row[place], STYLES.get(marks.plain(row[place]), "")) for place in places))
        console.print(made)
    if left_out:
        console.print(Text("Some columns do not fit. Use a wider terminal or --format json to see them.", style="dim"))
    for note in report.notes:
        console.print(Text(note))


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """Indices of the columns that fit: half a job's id helps nobody, so whole columns are left out, extra ones first
    and key ones last. The first column stays."""
    wide = [
        _FOLDED if column.fold else max(len(column.title), *(len(marks.plain(row[place])) for row in cells), 1)
        for place, column in enumerate(columns)
    ]
    places = list(range(len(columns)))
    while len(places) > 1 and _EDGE + sum(wide[place] + _GAP for place in places) > width:
        extra = [place for place in places[1:] if columns[place].extra]
        other = [place for place in places[1:] if not columns[place].key]
        places.remove((extra or other or places)[-1])
    return places
