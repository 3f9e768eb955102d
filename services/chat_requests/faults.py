"""What can be wrong with an upload, and how it is quoted."""

from __future__ import annotations

_SHOWN = 60


class WrongRowError(Exception):
    """The row is invalid. `reason` says what is wrong and what to do; `field` is the field at fault, or empty."""

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


class RefusedError(Exception):
    """The whole file is refused. `field` is the wrong option, or empty."""

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


def quoted(value: object, most: int = _SHOWN) -> str:
    """A text or another value of the file for a sentence: cut, on one line, with printable characters only. Quotation
    marks inside become single ones, so that the value ends where it seems to."""
    text = value if isinstance(value, str) else repr(value)
    cut = text[:most].encode("utf-8", "replace").decode()
    shown = "".join(each if each.isprintable() else "�" for each in cut).replace('"', "'")
    return f'"{shown}…"' if len(text) > most else f'"{shown}"'
