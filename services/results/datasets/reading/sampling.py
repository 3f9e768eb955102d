"""What a row asks for beside its messages: a request's other fields, as OpenAI names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from services import further
from services.results.datasets.reading.faults import WrongRowError, quoted
from services.results.datasets.reading.strict_json import dump
from touchstone.v1.dataset_pb2 import DatasetRow

_RANGES: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0, 2),
    "top_p": (float, 0, 1),
    "top_k": (int, 0, 100),
    "max_tokens": (int, 1, 1_000_000),
    "max_completion_tokens": (int, 1, 1_000_000),
    "context_length": (int, 1, 10_000_000),
    "seed": (int, -(2**63), 2**63 - 1),
    "repeat_penalty": (float, 0, 2),
}
_FURTHER = frozenset(
    (
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "min_p", "logit_bias", "logprobs"),
        *("top_logprobs", "response_format", "reasoning_effort", "verbosity", "chat_template_kwargs"),
    )
)
"""Fields of requests that plain lines may have beside their own; any other is metadata there."""
_MOST_STOPS = 4
_MOST_STOP_CHARACTERS = 1000
_EXTRA_BYTES = 64 * 1024


def is_field(name: str) -> bool:
    """Whether a plain line's name is a request's field and no metadata."""
    return name in _RANGES or name in _FURTHER or name == "stop" or name in _REFUSED


def ask_for(row: DatasetRow, fields: Mapping[str, Any]) -> None:
    """Puts a request's fields into the row's sampling and stop; null counts as left out. Raises WrongRowError."""
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name in _RANGES:
            _set(row, name, value)
        elif name == "stop":
            row.stop.extend(_stops(value))
        elif name in _REFUSED:
            _REFUSED[name](value)
        else:
            extra[name] = value
    if extra:
        _keep(row, extra)


def _set(row: DatasetRow, name: str, value: Any) -> None:
    kind, low, high = _RANGES[name]
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if not numeric or (kind is int and not isinstance(value, int)):
        what = "a whole number" if kind is int else "a number"
        shown = quoted(value, 20) if isinstance(value, str) else quoted(dump(value), 20)[1:-1]
        raise WrongRowError(f'"{name}" is {shown}; it must be {what}.')
    if not low <= value <= high:
        raise WrongRowError(f'"{name}" is {quoted(str(value), 20)[1:-1]}; it may be {low:,} to {high:,}.')
    field = "max_tokens" if name == "max_completion_tokens" else name
    if field == "max_tokens" and row.sampling.HasField(field) and row.sampling.max_tokens != value:
        raise WrongRowError('"max_tokens" and "max_completion_tokens" differ. Keep one of them.')
    setattr(row.sampling, field, value)


def _stops(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if (
        not isinstance(stops, list)
        or len(stops) > _MOST_STOPS
        or not all(isinstance(stop, str) and 0 < len(stop) <= _MOST_STOP_CHARACTERS for stop in stops)
    ):
        raise WrongRowError(
            f'"stop" may be a text or up to {_MOST_STOPS} texts, of 1 to {_MOST_STOP_CHARACTERS:,} characters each.'
        )
    return stops


def _keep(row: DatasetRow, extra: dict[str, Any]) -> None:
    if (size := len(dump(extra).encode())) > _EXTRA_BYTES:
        raise WrongRowError(
            f"The request's further fields have {size:,} bytes; it may be {_EXTRA_BYTES:,}. Leave some out."
        )
    for name, value in extra.items():
        if further.too_deep([value]):
            raise WrongRowError(
                f"{quoted(name)} nests more than {further.MOST_DEPTH} objects and arrays. Make it flatter."
            )
        if further.too_large(value):
            raise WrongRowError(f"{quoted(name)} holds a number that is too large. Write it as a text.")
    if named := further.asks_logprobs(extra):
        raise WrongRowError(f"{quoted(named)} {further.NO_LOGPROBS}")
    further.write(row.sampling, extra)


# -- what is not asked ---------------------------------------------------------------------------------------------


def _stream(value: Any) -> None:
    if value is not False:
        raise WrongRowError('"stream" is set. Streaming is the job\'s choice: leave it out.')


def _stream_options(value: Any) -> None:
    raise WrongRowError('"stream_options" is set. Streaming is the job\'s choice: leave it out.')


def _choices(value: Any) -> None:
    if value != 1 or isinstance(value, bool):
        raise WrongRowError(f'"n" is {quoted(value, 20)[1:-1]}; one answer is asked for a row. Leave it out.')


def _tools(value: Any) -> None:
    if value not in ([], {}, "none"):
        raise WrongRowError("The request brings tools, and tools are not called. Leave them out.")


def _speech(value: Any) -> None:
    if value != ["text"]:
        raise WrongRowError("The request asks for more than text. Leave out modalities and audio.")


_REFUSED: dict[str, Callable[[Any], None]] = {
    "stream": _stream,
    "stream_options": _stream_options,
    "n": _choices,
    "tools": _tools,
    "tool_choice": _tools,
    "functions": _tools,
    "function_call": _tools,
    "parallel_tool_calls": lambda value: None,
    "web_search_options": _tools,
    "modalities": _speech,
    "audio": _speech,
}
