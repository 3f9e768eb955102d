"""Sampling parameters as users write them, in JSON and in the Run page's fields: names, ranges, where they apply."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services import further
from touchstone.v1 import job_pb2

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_THOUSANDS = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9]{1,18})"
_WHOLE = re.compile("-?" + _THOUSANDS)
_AMOUNT = re.compile(rf"\$? ?({_THOUSANDS}(?:\.[0-9]{{0,18}})?|\.[0-9]{{1,18}})")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `field` is its place in `touchstone.v1.Sampling`; `kinds` are the providers that offer it."""

    name: str
    field: str
    label: str
    integer: bool
    low: float
    high: float
    hint: str
    kinds: tuple[str, ...]
    about: str

    def problem(self, value: object, name: str) -> str:
        """What is wrong with the value, as one sentence; empty when nothing is. A bool is no number."""
        if isinstance(value, bool) or not isinstance(value, int if self.integer else (int, float)):
            return f"{name} must be a {'whole ' if self.integer else ''}number."
        if isinstance(value, float) and not math.isfinite(value):
            return f"{name} must be a finite number."
        if value < self.low:
            return f"{name} begins at {self.low:g}."
        if value > self.high:
            end = f"{self.high:g}" if self.high < INT32_MAX else f"{int(self.high):,}"
            return f"{name} ends at {end}."
        return ""

    def parse(self, text: str) -> int | float | None:
        """A form field's number; None when it is none."""
        if self.integer:
            return whole(text)
        try:
            return float(text)
        except ValueError:
            return None


def whole(text: str) -> int | None:
    """A form field's whole number, with or without commas between thousands; None for anything else."""
    return int(text.replace(",", "")) if _WHOLE.fullmatch(text) else None


def amount(text: str) -> float | None:
    """A form field's US dollars as 1250.5, 1,250.50 or $5; None for anything else. 5,5 would else be read as 55."""
    known = _AMOUNT.fullmatch(text)
    return float(known[1].replace(",", "")) if known else None


_CHAT = ("ollama", "openai", "vllm", "engine", "grok", "gemini", "anthropic", "http")
_OPEN_WEIGHTS = ("ollama", "vllm", "engine")
_SEEDED = tuple(kind for kind in _CHAT if kind != "anthropic")
PARAMETERS: tuple[Parameter, ...] = (
    Parameter("temperature", "temperature", "Temperature", False, 0, 2, "0.0–2.0", _CHAT, "Sampling temperature."),
    Parameter("top_p", "top_p", "Top P", False, 0, 1, "0.0–1.0", _CHAT, "Top-p sampling."),
    Parameter(
        "top_k", "top_k", "Top K", True, 0, 100, "0–100", (*_OPEN_WEIGHTS, "gemini", "anthropic"), "Top-k sampling."
    ),
    Parameter(
        "repeat_penalty",
        "repeat_penalty",
        "Repeat penalty",
        False,
        0,
        2,
        "0.0–2.0",
        _OPEN_WEIGHTS,
        "Penalty on repeated tokens.",
    ),
    Parameter(
        "num_predict",
        "max_tokens",
        "Num predict",
        True,
        1,
        INT32_MAX,
        "tokens",
        _CHAT,
        "Most tokens to generate per item. max_tokens is the same.",
    ),
    Parameter(
        "num_ctx",
        "context_length",
        "Num context",
        True,
        1,
        INT32_MAX,
        "tokens",
        ("ollama",),
        "Context window in tokens.",
    ),
    Parameter(
        "seed", "seed", "Seed", True, -INT64_MAX - 1, INT64_MAX, "optional", (*_SEEDED, "baseline"), "Random seed."
    ),
)
BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}
ALIASES = {"max_tokens": "num_predict"}
"""Names that other APIs have for a parameter; either may be given."""

RESERVED = ("model", "messages", "prompt", "input", "contents", "stream")
"""Body fields that the evaluator writes; custom JSON may not replace them."""


def parameter_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for unknown names, values out of range, and a parameter under two names."""
    problems = []
    for name, value in values.items():
        known = BY_NAME.get(ALIASES.get(name, name))
        if known is None:
            allowed = ", ".join((*BY_NAME, *ALIASES))
            problems.append((f"{path}.{name}", f"{path}.{name} is not known. Allowed: {allowed}."))
        elif sentence := known.problem(value, f"{path}.{name}"):
            problems.append((f"{path}.{name}", sentence))
    for alias, name in ALIASES.items():
        if alias in values and name in values:
            problems.append((f"{path}.{alias}", f"Give {path}.{name} or {path}.{alias}, which are the same; not both."))
    return problems


def custom_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for fields that are not the user's to set, and for what cannot be stored."""
    if why := further.fault(values):
        return [(path, f"{path} {why}.")]
    if name := further.asks_logprobs(values):
        return [(f"{path}.{name}", f"{path}.{name} {further.NO_LOGPROBS}")]
    return [
        (f"{path}.{name}", f"{path}.{name} is set by Touchstone itself; leave it out.")
        for name in values
        if name in RESERVED
    ]


def parameter_schema() -> dict[str, Any]:
    """What `parameter_problems` accepts, in JSON Schema."""
    members = {
        one.name: {
            "type": "integer" if one.integer else "number",
            "minimum": one.low,
            "maximum": one.high,
            "description": one.about,
        }
        for one in PARAMETERS
    }
    for alias, name in ALIASES.items():
        members[alias] = members[name] | {"description": f"The same as {name}; give one of the two."}
    return {"title": "Sampling", "type": "object", "properties": members, "additionalProperties": False} | {
        "not": {"anyOf": [{"required": [alias, name]} for alias, name in ALIASES.items()]}
    }


CUSTOM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Merged into the provider's request as it is.",
    "propertyNames": {"not": {"enum": list(RESERVED)}},
}
"""What `custom_problems` accepts, in JSON Schema."""


def sampling(values: Mapping[str, Any], custom: Mapping[str, Any] | None = None) -> job_pb2.Sampling:
    """Checked values as a message. What is absent is not sent, so that the provider's default holds."""
    message = job_pb2.Sampling(**{BY_NAME[ALIASES.get(name, name)].field: value for name, value in values.items()})
    if custom:
        further.write(message, custom)
    return message
