"""Messages from columns: `{{column}}` and `{{column.field}}` are replaced by a row's values, and nothing else is
interpreted.

A template that is a JSON array gives messages, any other one user message. It is parsed before any value is inserted,
so no value can end a message or begin another, unless the template asks for the messages of a column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.chat_requests import json_places
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.chat_requests.messages import MOST_MESSAGES, ROLES, converse
from services.chat_requests.paths import value_at
from services.chat_requests.strict_json import MOST_LINE_BYTES, dump, parse
from services.words import refusals
from touchstone.v1.dataset_pb2 import DatasetRow

_MOST_TEMPLATE_BYTES = 64 * 1024
_NAME_CHARACTERS = 200
"""No longer than names of metadata: a name with thousands of dots can be read in as many ways in every row."""
_PLACE = re.compile(r"\{\{([^{}]*)\}\}")
_ARRAY = re.compile(r"\s*\[\s*(\{(?!\{)|\])")
"""How JSON messages begin: "[INST]" and "[{{column}}]" are texts."""
_COLUMNS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Template:
    """For each message its role, then its texts and names in turn: text, name, text, …, text. In place of the messages
    that a column holds: no role, and the column's name between two empty texts."""

    messages: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[str, ...]
    """Every name in it, once."""

    @classmethod
    def parse(cls, text: str) -> Template:
        """Raises RefusedError."""
        if not text.strip():
            raise RefusedError(
                "The template is empty. Write a message with names to insert, such as {{question}}.", "template"
            )
        if len(text.encode()) > _MOST_TEMPLATE_BYTES:
            raise RefusedError(f"The template has more than {_MOST_TEMPLATE_BYTES:,} bytes. Shorten it.", "template")
        if "\0" in text:
            raise RefusedError("The template contains the NUL character. Remove it.", "template")
        messages = tuple(
            (role, tuple(part.strip() if place % 2 else part for place, part in enumerate(_PLACE.split(content))))
            for role, content in (_array(text) if _ARRAY.match(text) else [("user", text)])
        )
        names = tuple(dict.fromkeys(name for _, parts in messages for name in parts[1::2]))
        if not names and any("{{" in content for _, (content, *_) in messages):
            raise _refused(text, text.find("{{"), "The template has {{ without }}. Write }} after the name.")
        if not names:
            raise RefusedError(
                "The template inserts nothing, so every row would ask the same question. Name a value, such as "
                "{{question}}.",
                "template",
            )
        if "" in names:
            empty = next((found.start() for found in _PLACE.finditer(text) if not found[1].strip()), 0)
            raise _refused(text, empty, "The template has {{}} without a name.")
        if longest := next((name for name in names if len(name) > _NAME_CHARACTERS), ""):
            why = f"which has more than {_NAME_CHARACTERS} characters. Use a shorter name."
            raise _refused(text, text.find(longest), f"The template names {quoted(longest, 20)}, {why}")
        return cls(messages, names)

    @property
    def _inserted(self) -> dict[str, None]:
        """Names whose values become texts."""
        return dict.fromkeys(name for role, parts in self.messages if role for name in parts[1::2])

    def fill(self, row: DatasetRow, values: Mapping[str, Any]) -> None:
        """Adds the row's messages. Raises WrongRowError for a missing column, and if they would be too long."""
        texts = {name: _text(values, name) for name in self._inserted}
        # Counted before joining: a short template can name a long column a thousand times.
        size = sum(
            len(texts[part]) if place % 2 else len(part)
            for role, parts in self.messages
            for place, part in enumerate(parts)
            if role
        )
        if size > MOST_LINE_BYTES:
            raise WrongRowError(
                f"The messages would have {size:,} characters; at most {MOST_LINE_BYTES:,} are allowed. Shorten them."
            )
        blank = True
        for role, parts in self.messages:
            if not role:
                converse(row, _turns(values, parts[1]))
                blank = False
                continue
            content = "".join(texts[part] if place % 2 else part for place, part in enumerate(parts))
            row.messages.add(role=role, content=content)
            blank = blank and not content.strip()
        if len(row.messages) > MOST_MESSAGES:
            raise WrongRowError(refusals.too_large("The row", len(row.messages), MOST_MESSAGES, "messages"))
        if blank:
            raise WrongRowError("The messages contain no text: all that the template inserts is empty here.")


def _array(text: str) -> list[tuple[str, str]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            f"The template starts like a JSON array of messages but is not valid JSON: {quoted(str(error), 80)[1:-1]}.",
            "template",
        ) from error
    if not found or len(found) > MOST_MESSAGES:
        raise RefusedError(f"A template must have between 1 and {MOST_MESSAGES:,} messages.", "template")
    messages = []
    for place, message in enumerate(found):
        if why := _problem(message):
            line = json_places.lines(text)[f"[{place}]"]
            raise RefusedError(_on_line(text, line, why), "template")
        messages.append(("", message["messages"]) if "messages" in message else (message["role"], message["content"]))
    return messages


def _problem(message: Any) -> str:
    """What is wrong with a message of a template; empty if nothing is."""
    if isinstance(message, dict) and set(message) == {"messages"}:
        fine = isinstance(message["messages"], str) and _PLACE.fullmatch(message["messages"])
        return "" if fine else '"messages" of a template must name one column, such as "{{history}}".'
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        return 'Every message of a template must be {"role": …, "content": …}, or {"messages": "{{column}}"}.'
    if message["role"] not in ROLES or not isinstance(message["content"], str):
        return f"The role of a message must be one of {', '.join(ROLES)}, and its content must be a string."
    try:
        message["content"].encode()
    except UnicodeEncodeError:
        return "The template contains half a character. Remove it."
    return ""


def _refused(text: str, place: int, reason: str) -> RefusedError:
    """For what is wrong at a place of the template, with its line."""
    return RefusedError(_on_line(text, text.count("\n", 0, place) + 1, reason), "template")


def _on_line(text: str, line: int, reason: str) -> str:
    return f"Line {line:,}: {reason}" if "\n" in text.strip() else reason


def _turns(values: Mapping[str, Any], name: str) -> Any:
    """The messages of a column, which a table holds as JSON. Raises WrongRowError."""
    value = _value(values, name)
    if isinstance(value, str):
        value = parse(value.encode(), f"column {quoted(name, 40)}")
    return value


def _text(values: Mapping[str, Any], name: str) -> str:
    value = _value(values, name)
    if isinstance(value, str):
        return value
    # A missing value reads as an empty cell does.
    return "" if value is None else dump(value)


def _value(values: Mapping[str, Any], name: str) -> Any:
    try:
        return value_at(values, name)
    except KeyError as error:
        known = ", ".join(quoted(column, 20) for column in list(values)[:_COLUMNS_SHOWN])
        more = ", …" if len(values) > _COLUMNS_SHOWN else ""
        raise WrongRowError(
            f"There is no {quoted(name)}, which the template names{f', only {known}' if known else ''}{more}."
        ) from error
