"""Paths into a JSON answer: the part of JSONPath (RFC 9535) that is needed to find an answer.

    $.choices[0].message.content         names and places; [-1] is the last
    $['odd name'][0]                     names in quotes
    $.output[?@.type=='message']         of a list, the objects whose field has this value
    $.output[0].content[*].text          every element

Written here rather than taken from a library so that errors are exact: they say which step of a path failed, and what
is there instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from services.errors import InvalidRequestError

_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)
    |\[\s*(?P<place>-?\d{1,9})\s*\]
    |\[\s*(?P<quoted>'[^']*'|"[^"]*")\s*\]
    |(?P<every>\[\s*\*\s*\]|\.\*)
    |\[\s*\?\s*\(?\s*@\.(?P<field>[^\W\d][\w-]*)\s*==\s*(?P<wanted>'[^']*'|"[^"]*"|-?\d{1,15}|true|false|null)\s*\)?\s*\]
    """,
    re.VERBOSE,
)
_MOST_SHOWN = 8


class NotFoundThereError(Exception):
    """Nothing is at a path of this answer. The message is a clause: "there is no 'text' at $.output[0]; it has id"."""


@dataclass(frozen=True, slots=True)
class _Step:
    text: str
    take: Callable[[Any], list[Any] | None]


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path. Two are equal when they are written the same."""

    text: str
    steps: tuple[_Step, ...] = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Raises InvalidRequestError saying where the path is wrong."""
        if not text.startswith("$"):
            raise InvalidRequestError(f"{text!r} is not a valid path. A path starts with $, as in $.output[0].text.")
        steps = []
        at = 1
        while at < len(text):
            found = _STEP.match(text, at)
            if found is None:
                raise InvalidRequestError(
                    f"{text!r} is not a valid path: {text[at:]!r} is not a valid step. A step is .name, ['name'], "
                    "[0], [*] or [?@.name=='value']."
                )
            steps.append(_step(found))
            at = found.end()
        return cls(text, tuple(steps))

    def find(self, document: Any) -> list[Any]:
        """Every value that the path leads to, at least one. Raises NotFoundThereError."""
        values, walked = [document], "$"
        for step in self.steps:
            taken = [step.take(value) for value in values]
            following = [value for some in taken if some is not None for value in some]
            if not following:
                raise NotFoundThereError(f"there is no {step.text} at {walked}, {_described(values)}")
            values = following
            walked += step.text
        return values

    def first(self, document: Any) -> Any:
        """The first value that the path leads to, or None."""
        try:
            return self.find(document)[0]
        except NotFoundThereError:
            return None


def _step(found: re.Match[str]) -> _Step:
    text = found.group()
    name = found["name"]
    if name is None and found["quoted"]:
        name = found["quoted"][1:-1]
    if name is not None:
        return _Step(text, _named(name))
    if found["place"]:
        return _Step(text, _placed(int(found["place"])))
    if found["every"]:
        return _Step(text, lambda value: list(_elements(value)))
    wanted = found["wanted"]
    value = wanted[1:-1] if wanted[0] in "'\"" else json.loads(wanted)
    return _Step(text, _having(found["field"], value))


def _named(name: str) -> Callable[[Any], list[Any] | None]:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else None


def _placed(place: int) -> Callable[[Any], list[Any] | None]:
    return lambda value: [value[place]] if isinstance(value, list) and -len(value) <= place < len(value) else None


def _having(field: str, wanted: Any) -> Callable[[Any], list[Any] | None]:
    def equal(element: Any) -> bool:
        # Compare types, too: in Python True equals 1.
        return (
            isinstance(element, dict)
            and field in element
            and element[field] == wanted
            and isinstance(element[field], bool) == isinstance(wanted, bool)
        )

    return lambda value: [element for element in _elements(value) if equal(element)]


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _described(values: list[Any]) -> str:
    value = values[0]
    if isinstance(value, dict):
        names = list(value)
        more = ", …" if len(names) > _MOST_SHOWN else ""
        return f"which has {', '.join(names[:_MOST_SHOWN])}{more}" if names else "which is an empty object"
    if isinstance(value, list):
        return f"which is a list of {len(value)}"
    return {str: "which is a text", bool: "which is true or false", type(None): "which is null"}.get(
        type(value), "which is a number"
    )
