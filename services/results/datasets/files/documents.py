"""Files that are one value: a JSON object over several lines, or YAML. They hold their rows as a list."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import yaml

from services.chat_requests import strict_json
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.files.lines import NO_ROWS
from services.words.refusals import counted

_MOST_JSON = 16 * 1024 * 1024
_MOST_YAML = 4 * 1024 * 1024
_LIST = "Write the rows as JSON Lines or as a JSON array."
TESTS = "tests"
"""The list of a configuration of promptfoo."""


def json_document(pieces: Iterable[bytes]) -> Any:
    """The value. Raises RefusedError."""
    try:
        return strict_json.parse(_whole(pieces, _MOST_JSON, "JSON object"), "file")
    except WrongRowError as wrong:
        raise RefusedError(f"{wrong.reason} {_LIST}") from wrong


def yaml_document(pieces: Iterable[bytes], check: Callable[[], None]) -> Any:
    """The value, without anything that JSON does not have. `check` is called again and again. Raises RefusedError:
    also for aliases, by which a few lines may repeat others any number of times."""
    data = _whole(pieces, _MOST_YAML, "YAML file")
    if b"\0" in data:
        raise RefusedError("The file contains NUL bytes. Remove them, and save the file as UTF-8.")
    depth = 0
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
        raise RefusedError(wrong.reason) from wrong
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1:,}" if mark else ""
        why = getattr(error, "problem", None) or "a value has no such form"
        raise RefusedError(f"The file is not valid YAML{where}: {quoted(why, 80)[1:-1]}.") from error


def rows_of(document: Any) -> tuple[list[Any], dict[str, Any]]:
    """The rows of a document, and what else it holds. Raises RefusedError unless it has just one list of objects."""
    if isinstance(document, list):
        return document, {}
    if not isinstance(document, dict):
        raise RefusedError(NO_ROWS)
    if isinstance(document.get(TESTS), str):
        raise RefusedError(f"The tests are in another file, {quoted(document[TESTS])}. Upload that file.")
    if _texts(document.get(TESTS)):
        raise RefusedError(f"The tests are in other files, {quoted(document[TESTS][0])} first. Upload each of them.")
    lists = [name for name, value in document.items() if _objects(value)]
    name = TESTS if TESTS in lists else lists[0] if len(lists) == 1 else ""
    if not name:
        raise RefusedError(f"The file is one object with {counted(len(lists), 'list')} of rows. {_LIST}")
    rows = [row for one in document[name] for row in _questions(one)]
    return rows, {other: value for other, value in document.items() if other != name}


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _questions(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an article of SQuAD, one for each of its questions; any other row as it is."""
    if not _objects(row.get("paragraphs")):
        return [row]
    about = {name: value for name, value in row.items() if name != "paragraphs"}
    return [
        about | {"context": paragraph.get("context")} | question
        for paragraph in row["paragraphs"]
        if _objects(paragraph.get("qas"))
        for question in paragraph["qas"]
    ]


def _whole(pieces: Iterable[bytes], most: int, what: str) -> bytes:
    held, size = [], 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > most:
            raise RefusedError(f"The {what} has more than {counted(most, 'byte')}. {_LIST}")
    return b"".join(held)


class _Loader(yaml.CSafeLoader):
    """Reads scalars as YAML 1.2 and JavaScript do: `no` is a text and 12:30 another. Times, and numbers that begin with
    zeros, stay texts, as they are written. Refuses a name that occurs twice in one map."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        made = super().construct_mapping(node, deep)
        if len(set(map(str, made))) != len(node.value):
            raise WrongRowError(
                f"A name occurs twice in the map on line {node.start_mark.line + 1:,}. Keep one of them."
            )
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
