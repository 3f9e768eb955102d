"""Cells made of parts, of which some are marked as removed or added: as text, as Markdown, in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

REMOVED, ADDED = "removed", "added"
_SIGNS = {REMOVED: ("[-", "-]"), ADDED: ("{+", "+}")}
"""As in the word diff of git."""
_MARKDOWN = {REMOVED: "~~", ADDED: "**"}
_STYLES = {REMOVED: "red strike", ADDED: "green"}


class Part(NamedTuple):
    """`mark` is REMOVED, ADDED or empty."""

    text: str
    mark: str = ""


Cell = Sequence[Part]


def plain(cell: Cell) -> str:
    return "".join(_around(part, *_SIGNS.get(part.mark, ("", ""))) for part in cell)


def markdown(cell: Cell) -> str:
    return "".join(_around(_escaped(part), *[_MARKDOWN.get(part.mark, "")] * 2) for part in cell)


def coloured(cell: Cell, style: str) -> Text:
    """`style` is for a cell without marks."""
    return Text.assemble(*((part.text, _STYLES.get(part.mark, style)) for part in cell))


def _around(part: Part, before: str, after: str) -> str:
    """White space at the end stays outside: Markdown does not allow a mark after a space."""
    words = part.text.rstrip()
    return f"{before}{words}{after}{part.text[len(words) :]}" if words else part.text


def _escaped(part: Part) -> Part:
    return part._replace(text=part.text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " "))
