"""Where in a JSON file a value stands, such as the one that `strict_json` refuses. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from services.chat_requests.faults import WrongRowError
from services.chat_requests.strict_json import MOST_DEPTH, check_text, finite

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)
_CONSTANTS = ("true", "false", "null")


def fault_line(text: str) -> int:
    """The line, from 1, of the first value or name that is refused in a text that is JSON otherwise; 0 if there is
    none, also in one that is not JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return 0
    except (ValueError, RecursionError):
        pass
    names: list[set[str] | None] = []
    """Of each object around the place its names so far; None for arrays."""
    before = ""
    for token in _TOKEN.finditer(text):
        if not _is_fine(token[0], before, names):
            return text.count("\n", 0, token.start()) + 1
        before = token[0]
    return 0


def lines(text: str) -> dict[str, int]:
    """The line of each value, from 1, by its path: `criteria[0].name` for the name in the first of the criteria. A
    member of an object is on the line of its name. For a text that is JSON."""
    found: dict[str, int] = {}
    around: list[tuple[str, int]] = []
    """Of each object and array around the place its path, and the number of values before; -1 for objects."""
    path, before, line, end = "", "", 1, 0
    for token in _TOKEN.finditer(text):
        line, end = line + text.count("\n", end, token.start()), token.start()
        mark = token[0]
        if mark in "{[":
            found.setdefault(path, line)
            around.append((path, -1 if mark == "{" else 0))
            path = f"{path}[0]" if mark == "[" else path
        elif mark in "}]":
            path = around.pop()[0]
        elif mark == ",":
            path, count = around[-1]
            if count >= 0:
                around[-1] = path, count + 1
                path = f"{path}[{count + 1}]"
        elif mark != ":":
            if before in ("{", ",") and around and around[-1][1] < 0:
                path = inside(around[-1][0], json.loads(mark))
            found.setdefault(path, line)
        before = mark
    return found


def inside(path: str, name: str) -> str:
    """The path of an object's member."""
    return f"{path}.{name}" if path else name


def nearest(lines: Mapping[str, int], path: str) -> int:
    """The line of a path, or of what is around it; 0 where that is the whole text."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines[path] if path else 0


def _is_fine(token: str, before: str, names: list[set[str] | None]) -> bool:
    if token in "{[":
        names.append(set() if token == "{" else None)
        return len(names) <= MOST_DEPTH
    if token in "}]":
        names.pop()
    elif token not in ":,":
        try:
            return _is_value(token, names[-1] if names and before in ("{", ",") else None)
        except (ValueError, WrongRowError):
            return False
    return True


def _is_value(token: str, names: set[str] | None) -> bool:
    """Raises ValueError and WrongRowError. `names` are those of an object of which the token is a name."""
    if not token.startswith('"'):
        # Python reads no whole number of over 4,300 digits.
        return token in _CONSTANTS or (finite(token) is not None and json.loads(token) is not None)
    text = json.loads(token)
    check_text(text)
    if names is None:
        return True
    is_new = text not in names
    names.add(text)
    return is_new
