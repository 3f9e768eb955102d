"""Sampling parameters of requests: what they may be, the same in JSON Schema, and the message that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services import further_fields
from services.gateway.fields.job import check_of
from services.words.sampling import BY_REST_NAME, PARAMETERS
from touchstone.v1 import job_pb2

ALIASES = [(alias, one.rest) for one in PARAMETERS.values() for alias in one.aliases]
"""Names that other APIs have for a parameter, each with Touchstone's own; either may be given."""
RESERVED = ("model", "messages", "prompt", "input", "contents", "stream")
"""Body fields that the evaluator writes; custom JSON may not replace them."""


def parameter_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for unknown names, values out of range, and a parameter under two names."""
    problems = []
    for name, value in values.items():
        known = BY_REST_NAME.get(name)
        if known is None:
            problems.append((f"{path}.{name}", f"{path}.{name} is not known. Allowed: {', '.join(BY_REST_NAME)}."))
        elif sentence := known.problem(value, f"{path}.{name}"):
            problems.append((f"{path}.{name}", sentence))
    for alias, name in ALIASES:
        if alias in values and name in values:
            problems.append((f"{path}.{alias}", f"Give {path}.{name} or {path}.{alias}, not both: they are the same."))
    return problems


def custom_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for fields that are not the user's to set, and for what cannot be stored."""
    if why := further_fields.fault(values):
        return [(path, f"{path} {why}.")]
    if name := further_fields.asks_logprobs(values):
        return [(f"{path}.{name}", f"{path}.{name} {further_fields.NO_LOGPROBS}")]
    return [
        (f"{path}.{name}", f"{path}.{name} is set by Touchstone itself. Leave it out.")
        for name in values
        if name in RESERVED
    ]


def about(name: str, words: str = "") -> str:
    """What a parameter is, or `words` in place of that; of another name that it has, only whose."""
    one = BY_REST_NAME[name]
    return words or one.about if name == one.rest else f"The same as `{one.rest}`. Give one of the two."


def parameter_schema() -> dict[str, Any]:
    """What `parameter_problems` accepts, in JSON Schema."""
    members = {name: check_of(one).schema | {"description": about(name)} for name, one in BY_REST_NAME.items()}
    return {"title": "Sampling", "type": "object", "properties": members, "additionalProperties": False} | {
        "not": {"anyOf": [{"required": [*names]} for names in ALIASES]}
    }


CUSTOM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Merged into the provider's request as it is. `logprobs` is refused.",
    "propertyNames": {"not": {"enum": list(RESERVED)}},
}
"""What `custom_problems` accepts, in JSON Schema."""


def sampling(values: Mapping[str, Any], custom: Mapping[str, Any] | None = None) -> job_pb2.Sampling:
    """Checked values as a message. What is absent is not sent, so that the provider's default holds."""
    message = job_pb2.Sampling(**{BY_REST_NAME[name].name: value for name, value in values.items()})
    if custom:
        further_fields.write(message, custom)
    return message
