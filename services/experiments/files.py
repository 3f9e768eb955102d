"""Files that hold a definition, or scenarios."""

from __future__ import annotations

from typing import Any

from services.chat_requests import strict_json
from services.chat_requests.faults import RefusedError, WrongRowError
from services.experiments.fields import DefinitionError
from services.experiments.scenarios import read_lines


def definition(data: bytes, *, is_json: bool = False) -> dict[str, Any]:
    """The object in a YAML file, or in JSON, as `reading.read` takes it. Raises DefinitionError."""
    try:
        value = strict_json.parse(data, "file") if is_json else _yaml(data)
    except (RefusedError, WrongRowError) as error:
        raise DefinitionError([("", error.reason)]) from error
    if not isinstance(value, dict):
        raise DefinitionError([("", "The file must hold an object with name, models and prompts.")])
    return value


def scenarios(data: bytes) -> list[Any]:
    """The scenarios of a file of JSON Lines. Raises DefinitionError."""
    try:
        return read_lines(data)
    except RefusedError as error:
        raise DefinitionError([("scenarios", error.reason)]) from error


def _yaml(data: bytes) -> Any:
    try:
        # The client can do without it.
        from services.chat_requests import yaml_document
    except ModuleNotFoundError as error:
        raise RefusedError("YAML needs the package PyYAML. Install it: pip install pyyaml") from error
    return yaml_document.parse(data)
