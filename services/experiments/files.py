"""Files that hold a definition, or scenarios."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

from services.chat_requests import json_places, strict_json
from services.chat_requests.faults import RefusedError, WrongRowError
from services.experiments.fields import DefinitionError
from services.experiments.scenarios import read_lines


def text(data: bytes) -> str:
    """A file's text. Its lines end with a line feed. Raises RefusedError for bytes that are not UTF-8, and for NUL."""
    try:
        found = data.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        why = f"has the byte 0x{error.object[error.start]:02X}, which is not UTF-8. Save the file as UTF-8."
        raise RefusedError(f"Line {_line(error.object, error.start):,} {why}") from error
    if "\0" in found:
        where = _line(data, data.index(b"\0"))
        raise RefusedError(f"Line {where:,} has a NUL byte. Remove it, and save the file as UTF-8.")
    return found.replace("\r\n", "\n").replace("\r", "\n")


def definition(data: bytes, *, is_json: bool = False) -> dict[str, Any]:
    """The object in a YAML file, or in JSON, as `reading.read` takes it. Raises DefinitionError."""
    try:
        data = text(data).encode()
        value = _json(data) if is_json else _yaml(data)
    except (RefusedError, WrongRowError) as error:
        raise DefinitionError([("", error.reason)]) from error
    if not isinstance(value, dict):
        raise DefinitionError([("", "The file must hold an object with name, models and prompts.")])
    return value


def lines(text: str, *, is_json: bool = False) -> dict[str, int]:
    """Of a text that `definition` can read, the line of each value, from 1, by its path, such as
    `prompts[1].template`."""
    if is_json:
        return json_places.lines(text)
    # The client can do without it.
    from services.chat_requests import yaml_document

    return yaml_document.lines(text)


def line_of(lines: Mapping[str, int], path: str) -> int:
    """The line of a path, or of what is around it; 0 where that is the whole text."""
    return json_places.nearest(lines, path)


def scenario_lines(data: bytes) -> list[int]:
    """The line of each scenario in a file of JSON Lines, from 1."""
    return [number for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]


def scenarios(data: bytes) -> list[Any]:
    """The scenarios of a file of JSON Lines. Raises DefinitionError."""
    rows, wrong = read_lines(data)
    if wrong:
        raise DefinitionError([("scenarios", sentence) for sentence in wrong])
    return rows


def _line(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


def _json(data: bytes) -> Any:
    try:
        return strict_json.parse(data, "file")
    except WrongRowError as error:
        if b"\n" not in data.strip() or not (line := json_places.fault_line(data.decode())):
            raise
        raise WrongRowError(f"Line {line:,}: {error.reason}") from error


def _yaml(data: bytes) -> Any:
    try:
        # The client can do without it.
        from services.chat_requests import yaml_document
    except ModuleNotFoundError as error:
        raise RefusedError("YAML needs the package PyYAML. Install it: pip install pyyaml") from error
    return yaml_document.parse(data)
