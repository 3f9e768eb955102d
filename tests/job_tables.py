"""Tables about the fields of a job in docs, made from their declarations: `make docs` renews them.

A table stands between `<!-- fields of a job: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from services.words.fields import Choice, Field, Number, Pattern, Switch, TextList, TextTable
from services.words.job_options import ALL, DATASET, SUITE
from services.words.sampling import PARAMETERS
from services.words.scorers import OPTIONS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS / "datasets.md", DOCS / "cli.md")
_MARKED = re.compile(r"(?ms)^<!-- fields of a job: ([^>]+?) -->\n.*?^<!-- end -->$")


def renewed(page: str) -> str:
    """The page with its tables as the declarations have them. Raises KeyError for an unknown name."""

    def table(found: re.Match[str]) -> str:
        return "\n".join((f"<!-- fields of a job: {found[1]} -->", *TABLES[found[1]](), "<!-- end -->"))

    return _MARKED.sub(table, page)


def names(page: str) -> list[str]:
    """The names of the page's tables."""
    return _MARKED.findall(page)


def _rows() -> Iterator[str]:
    yield from ("| field | value | |", "|---|---|---|")
    for one in PARAMETERS.values():
        yield f"| {_listed((one.name, *one.rows))} | {_value(one)} | {one.about} |"


def _flags(fields: Iterable[Field]) -> Iterator[str]:
    yield from ("| flag | value | |", "|---|---|---|")
    for one in fields:
        only = " For suites." if one.name in SUITE.keys() - DATASET else ""
        only = " For datasets." if one.name in DATASET.keys() - SUITE else only
        yield f"| {_listed(one.flags)} | {_value(one)} | {one.about}{only} |"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _value(field: Field) -> str:
    match field:
        case Number():
            kind = "whole number" if field.whole else "number"
            return f"{kind}, {field.range}" if field.range else kind
        case Choice():
            return _listed(field.words)
        case TextList():
            return "names, separated by commas"
        case TextTable():
            return "`KEY=VALUE`, may be repeated"
        case Pattern():
            return "pattern"
        case Switch():
            return ""
    return "text"


_MESSAGES = ("sampling", "scoring")
"""Options that several flags make up."""
TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "in rows": _rows,
    "flags of jobs": lambda: _flags(field for name, field in ALL.items() if name not in _MESSAGES),
    "flags of sampling": lambda: _flags(PARAMETERS.values()),
    # A tolerance is relative with a % behind it.
    "flags of scoring": lambda: _flags(one for name, one in OPTIONS.items() if name != "tolerance_is_relative"),
}

if __name__ == "__main__":
    for path in PAGES:
        path.write_text(renewed(path.read_text()))
