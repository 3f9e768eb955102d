"""Files that are one value: a JSON object over several lines, or YAML. They hold their rows as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from services.chat_requests import strict_json
from services.chat_requests import yaml_document as yaml_values
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.files.lines import NO_ROWS
from services.words.refusals import counted

_MOST_JSON = 16 * 1024 * 1024
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
    """As `services.chat_requests.yaml_document.parse`. Raises RefusedError also for a file that is too large."""
    return yaml_values.parse(_whole(pieces, yaml_values.MOST_BYTES, "YAML file"), check)


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
