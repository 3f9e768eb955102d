"""What a row sets in addition to its messages: a request's other fields, as OpenAI names them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from services import further_fields
from services.chat_requests.faults import WrongRowError, quoted
from services.chat_requests.strict_json import dump_fields
from services.words import refusals
from services.words.sampling import BY_ROW_NAME
from touchstone.v1.dataset_pb2 import DatasetRow

_FURTHER = frozenset(
    (
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs"),
        *("top_logprobs", "response_format", "reasoning_effort", "verbosity", "chat_template_kwargs"),
        *further_fields.OF_TOOLS,
    )
)
"""Fields of requests that plain lines may have in addition to their own; any other name is metadata there."""
_MOST_STOPS = 4
_MOST_STOP_CHARACTERS = 1000
_EXTRA_BYTES = 64 * 1024
_REMEMBERED = 32


def is_field(name: str) -> bool:
    """Whether a plain line's name is a request's field, not metadata."""
    return name in BY_ROW_NAME or name in _FURTHER or name == "stop" or name in _REFUSED


def ask_for(row: DatasetRow, fields: Mapping[str, Any]) -> None:
    """Puts a request's fields into the row's sampling and stop; null counts as absent. Raises WrongRowError."""
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name in BY_ROW_NAME:
            _set(row, name, value)
        elif name == "stop":
            row.stop.extend(_stops(value))
        elif name in _REFUSED:
            _REFUSED[name](name, value)
        else:
            extra[name] = value
    if extra.keys() & further_fields.OF_TOOLS and not extra.get("tools"):
        _leave_out_tools(extra)
    if extra:
        _keep(row, extra)


def _set(row: DatasetRow, name: str, value: Any) -> None:
    parameter = BY_ROW_NAME[name]
    if parameter.whole and isinstance(value, float) and value.is_integer():
        value = int(value)
    if problem := parameter.problem(value, f'"{name}"'):
        raise WrongRowError(problem)
    field = parameter.name
    if parameter.rows and row.sampling.HasField(field) and getattr(row.sampling, field) != value:
        names = " and ".join(f'"{one}"' for one in (field, *parameter.rows))
        raise WrongRowError(f"{names} differ. Keep one of them.")
    setattr(row.sampling, field, value)


def _stops(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if (
        not isinstance(stops, list)
        or len(stops) > _MOST_STOPS
        or not all(isinstance(stop, str) and 0 < len(stop) <= _MOST_STOP_CHARACTERS for stop in stops)
    ):
        raise WrongRowError(
            f'"stop" must be a string or up to {_MOST_STOPS} strings, each with 1 to {_MOST_STOP_CHARACTERS:,} '
            "characters."
        )
    return stops


def _keep(row: DatasetRow, extra: dict[str, Any]) -> None:
    written = dump_fields(extra)
    if (size := len(written.encode())) > _EXTRA_BYTES:
        raise WrongRowError(refusals.too_large("The rest of the request", size, _EXTRA_BYTES, "bytes"))
    if why := _fault(written):
        raise WrongRowError(why)
    row.sampling.ClearField("extra")
    row.sampling.extra_json = written


@lru_cache(maxsize=_REMEMBERED)
def _fault(written: str) -> str:
    """Why fields that are written as JSON cannot be kept, as a sentence. Most rows of a file have the same ones, and a
    look at each of their values takes longer than all else that is done with a row."""
    extra = json.loads(written)
    if "tools" in extra and (why := further_fields.tools_fault(extra)):
        return why
    for name, value in extra.items():
        if further_fields.too_deep([value]):
            return f"{quoted(name)} nests more than {further_fields.MOST_DEPTH} objects and arrays. Make it flatter."
        if further_fields.too_large(value):
            return f"{quoted(name)} contains a number that is too large. Write it as a string."
    named = further_fields.asks_logprobs(extra)
    return f"{quoted(named)} {further_fields.NO_LOGPROBS}" if named else ""


def _leave_out_tools(extra: dict[str, Any]) -> None:
    """What means the same as no tools. Raises WrongRowError."""
    if extra.get("tool_choice", "none") not in ("none", {}, []):
        raise WrongRowError('"tool_choice" needs "tools". Add them, or leave it out.')
    for name in further_fields.OF_TOOLS:
        extra.pop(name, None)


# -- what is not asked ---------------------------------------------------------------------------------------------


def _stream(_name: str, value: Any) -> None:
    if value is not False:
        raise WrongRowError('"stream" is set by the job, not by a row. Leave it out.')


def _stream_options(_name: str, value: Any) -> None:
    raise WrongRowError('"stream_options" is set by the job, not by a row. Leave it out.')


def _choices(_name: str, value: Any) -> None:
    if value != 1 or isinstance(value, bool):
        raise WrongRowError('"n" must be 1: each row gets one answer. Leave it out.')


def _functions(name: str, value: Any) -> None:
    if value not in ([], {}, "none"):
        raise WrongRowError('The request has functions in an old form. Write them as "tools".', name)


def _search(_name: str, value: Any) -> None:
    if value != {}:
        raise WrongRowError("The request asks the provider to search the web. Leave web_search_options out.")


def _speech(name: str, value: Any) -> None:
    if value != ["text"]:
        raise WrongRowError("The request asks for more than text. Leave out modalities and audio.", name)


_REFUSED: dict[str, Callable[[str, Any], None]] = {
    "stream": _stream,
    "stream_options": _stream_options,
    "n": _choices,
    "functions": _functions,
    "function_call": _functions,
    "web_search_options": _search,
    "modalities": _speech,
    "audio": _speech,
}
