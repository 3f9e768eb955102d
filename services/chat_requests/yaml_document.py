"""YAML as a value, without anything that JSON does not have."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import yaml

from services.chat_requests import json_places, strict_json
from services.chat_requests.faults import RefusedError, WrongRowError, quoted

MOST_BYTES = 4 * 1024 * 1024


def _nothing() -> None:
    """No check."""


def parse(data: bytes, check: Callable[[], None] = _nothing) -> Any:
    """The value. `check` is called again and again. Raises RefusedError: also for aliases, by which a few lines may
    repeat others any number of times."""
    if b"\0" in data:
        raise RefusedError("The file contains NUL bytes. Remove them, and save the file as UTF-8.")
    depth, text = 0, ""
    try:
        text = strict_json.utf8(data)
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            check()
            if isinstance(event, yaml.AliasEvent):
                where = f"Line {event.start_mark.line + 1:,}" if event.start_mark else "The file"
                raise RefusedError(f"{where} has a YAML alias, {quoted(event.anchor, 40)}. Write out its value.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > strict_json.MOST_DEPTH:
                raise RefusedError(
                    f"The file nests more than {strict_json.MOST_DEPTH} lists and maps. Make it flatter."
                )
        return _plain(yaml.load(text, Loader=_Loader))
    except WrongRowError as wrong:
        raise RefusedError(_placed(text, wrong.reason) if text else wrong.reason) from wrong
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if "digits" in str(error):
            # Python reads no whole number of over 4,300.
            why = "The file contains a number with too many digits. Write it as a text."
            raise RefusedError(_placed(text, why)) from error
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1:,}" if mark else ""
        why = getattr(error, "problem", None) or "a value has no such form"
        raise RefusedError(f"The file is not valid YAML{where}: {quoted(why, 80)[1:-1]}.") from error


def lines(text: str) -> dict[str, int]:
    """The line of each value, from 1, by its path, as `json_places.lines`, of a text that `parse` takes."""
    found: dict[str, int] = {}
    loader = _Loader(text)
    try:
        waiting: list[tuple[str, int, Any]] = [("", 0, loader.get_single_node())]
        while waiting:
            path, line, node = waiting.pop()
            found.setdefault(path, line or node.start_mark.line + 1)
            if isinstance(node, yaml.MappingNode):
                for name, value in node.value:
                    called = str(name.value) if isinstance(name, yaml.ScalarNode) else ""
                    waiting.append((json_places.inside(path, called), name.start_mark.line + 1, value))
            elif isinstance(node, yaml.SequenceNode):
                waiting += [(f"{path}[{place}]", 0, value) for place, value in enumerate(node.value)]
    finally:
        loader.dispose()
    return found


def _placed(text: str, reason: str) -> str:
    """The reason, with the line of the first value or name that has no form in JSON."""
    loader = _Loader(text)
    try:
        waiting: list[Any] = [loader.get_single_node()]
        while waiting:
            node = waiting.pop()
            if isinstance(node, yaml.ScalarNode) and not _is_plain(loader, node):
                return f"Line {node.start_mark.line + 1:,}: {reason}"
            if isinstance(node, yaml.MappingNode):
                waiting += [each for pair in reversed(node.value) for each in reversed(pair)]
            elif isinstance(node, yaml.SequenceNode):
                waiting += reversed(node.value)
    finally:
        loader.dispose()
    return reason


def _is_plain(loader: _Loader, node: yaml.ScalarNode) -> bool:
    try:
        _plain(loader.construct_object(node))
    except (WrongRowError, ValueError):
        return False
    return True


class _Loader(yaml.CSafeLoader):
    """Reads scalars as YAML 1.2 and JavaScript do: `no` is a text and 12:30 another. Times, and numbers that begin with
    zeros, stay texts, as they are written. Refuses a name that occurs twice in one map."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        made = super().construct_mapping(node, deep)
        if len(set(map(str, made))) != len(node.value):
            lines: dict[str, int] = {}
            for name, _ in node.value:
                key, line = str(self.construct_object(name)), name.start_mark.line + 1
                if key in lines:
                    where = f"on line {line:,}" if line == lines[key] else f"on lines {lines[key]:,} and {line:,}"
                    raise WrongRowError(f"The name {quoted(key)} occurs twice in one map, {where}. Keep one of them.")
                lines[key] = line
        return made


_Loader.yaml_implicit_resolvers = {}
for _kind, _form, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_form})$"), _first)


def _plain(value: Any) -> Any:
    """The value as JSON. Raises WrongRowError."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, str):
        strict_json.check_text(value)
        return value
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise WrongRowError(f"The value {quoted(value)} has no form in JSON. Write it as a text.")


class _Dumper(yaml.CSafeDumper):
    """Writes texts so that both this module and readers of YAML 1.1 read texts again."""

    def ignore_aliases(self, data: Any) -> bool:
        """A value that occurs twice is written twice: aliases are refused."""
        return True


for _first, _resolvers in _Loader.yaml_implicit_resolvers.items():
    for _kind, _form_ in _resolvers:
        _Dumper.add_implicit_resolver(_kind, _form_, [_first])


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    lines = text.split("\n")
    is_block = len(lines) > 1 and not any(line.endswith((" ", "\t")) for line in lines)
    is_plain = all(char.isprintable() or char == "\n" for char in text) and not text.startswith((" ", "\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if is_block and is_plain else None)


_Dumper.add_representer(str, _text)
_ENDLESS = 2**31 - 1
"""No line is broken."""


def written(value: Any) -> str:
    """A value of JSON as YAML that `parse` reads as the same value; texts of several lines are blocks."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_ENDLESS))
