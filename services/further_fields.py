"""Further fields of a request: what a job or a row sends to a provider in addition to the parameters that Touchstone
names.

They are kept and sent as one JSON object with its names in the order in which they were given: a schema with another
order of fields asks a model for something else. Whole numbers keep their digits, 1.0 stays 1.0.

Versions up to 0.1 kept them as a protobuf Struct, which keeps neither the order of names nor whole numbers. It is still
read, its names sorted, and never written. Pure.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from google.protobuf import json_format

from touchstone.v1 import job_pb2

FIELDS = ("extra", "extra_json")
"""Fields of Sampling that hold them, the one of earlier versions first."""
MOST_DEPTH = 16
_LOGPROBS = frozenset(
    ("logprobs", "top_logprobs", "prompt_logprobs", "responseLogprobs", "n_probs", "return_logprob", "top_logprobs_num")
)
MOST_TOP_LOGPROBS = 20
NO_LOGPROBS = (
    f"asks for log-probabilities in a form that is not stored. Use logprobs true, with top_logprobs of up to "
    f"{MOST_TOP_LOGPROBS}."
)
"""The rest of a sentence after the name of such a field."""
OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MOST_TOOLS = 128
_CHOICES = ("auto", "none", "required")
_TEMPERATURE, _CUTS = "temperature", ("top_p", "top_k", "min_p")
"""What sets how answers are sampled."""
_INSIDE = ("generationConfig", "options")
"""Objects in which providers take parameters in addition to those of the request itself."""


def fields(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """The fields by name, a new object; empty without any. Raises ValueError for fields that no request could hold."""
    if sampling.extra_json:
        found: dict[str, Any] = json.loads(sampling.extra_json)
        return found
    if not sampling.HasField("extra"):
        return {}
    try:
        known = whole(json_format.MessageToDict(sampling.extra))
        return {name: _sorted(known[name]) for name in sorted(known)}
    except json_format.Error as error:
        raise ValueError("contains a number that is not valid JSON") from error


def write(sampling: job_pb2.Sampling, values: Mapping[str, Any]) -> None:
    """Replaces any existing fields by these. Raises ValueError with the result of `fault`."""
    sampling.ClearField("extra")
    sampling.extra_json = dump(values) if values else ""


def samples(sampling: job_pb2.Sampling, values: Mapping[str, Any]) -> bool:
    """Whether it sets a temperature or the like. Its further fields, `values`, may do so in any place that some
    protocol has for it, or turn on Claude's thinking, which cannot be combined with a temperature."""
    places = [values, *(values[name] for name in _INSIDE if isinstance(values.get(name), dict))]
    thinking = values.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")
    named = any(sampling.HasField(name) for name in (_TEMPERATURE, *_CUTS))
    return named or thinks or any({_TEMPERATURE, *_CUTS, "topP", "topK"} & place.keys() for place in places)


def dump(value: Any) -> str:
    """The value as JSON without needless space. Raises ValueError for numbers that JSON does not have."""
    return _encode(value)


def parse(text: str) -> dict[str, Any]:
    """The fields in a caller's JSON text. Raises ValueError with a clause that continues after its name."""
    try:
        values = _decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.pos + 1:,}") from None
    if not isinstance(values, dict):
        raise ValueError('must be a JSON object, such as {"reasoning_effort": "low"}')
    if why := fault(values):
        raise ValueError(why)
    return values


def fault(values: Mapping[str, Any]) -> str:
    """Why the fields cannot be kept, as a clause that continues after their name; empty if they can."""
    if too_deep(values):
        return _TOO_DEEP
    if too_large(values):
        return _TOO_LARGE
    try:
        dump(values).encode()
    except UnicodeEncodeError:
        return "contains half a character"
    except ValueError:
        return "contains a number that is not valid JSON"
    return ""


def too_deep(value: Any, depth: int = MOST_DEPTH) -> bool:
    """Whether a value nests more than this many objects and arrays."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return any(isinstance(inner, dict | list) and (not depth or too_deep(inner, depth - 1)) for inner in inside)


def too_large(value: Any) -> bool:
    """Whether a whole number in it is more than most readers of JSON can hold at all. `value` is not too deep."""
    if isinstance(value, dict | list):
        return any(map(too_large, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and abs(value) > _LARGEST


def asks_logprobs(values: Mapping[str, Any]) -> str:
    """The name of a field that asks for log-probabilities in a form other than OpenAI's, or in an impossible one; empty
    where none does. Those are not stored with answers, so a request for them is refused."""
    inside = [values[name] for name in _INSIDE if isinstance(values.get(name), dict)]
    places: list[Mapping[str, Any]] = [values, *inside]
    for place in places:
        for name in sorted(_LOGPROBS & place.keys()):
            if place[name] not in (None, False, 0) and not (place is values and _is_ours(values, name)):
                return name
    include = values.get("include")
    named = (
        any(isinstance(each, str) and "logprobs" in each for each in include) if isinstance(include, list) else False
    )
    return "include" if named else ""


def _is_ours(values: Mapping[str, Any], name: str) -> bool:
    value = values[name]
    if name == "logprobs":
        return value is True
    top = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOP_LOGPROBS
    return name == "top_logprobs" and top and values.get("logprobs") is True


def tools_fault(values: Mapping[str, Any]) -> str:
    """Why the tools of a row cannot be offered, as a sentence; empty where they can. `values` has some."""
    tools, choice = values["tools"], values.get("tool_choice", "auto")
    if not isinstance(tools, list) or len(tools) > MOST_TOOLS:
        return f'"tools" must be a list of up to {MOST_TOOLS} functions.'
    names: set[str] = set()
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict):
            return 'Every tool must be {"type": "function", "function": …}. Leave out tools that run at the provider.'
        name = function.get("name")
        if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name):
            return "The name of a tool must have 1 to 64 letters, digits, _ and -."
        if name in names:
            return f'Two tools have the name "{name}". Keep one of them.'
        if not isinstance(function.get("parameters", {}), dict):
            return f'The "parameters" of tool "{name}" must be a JSON schema, which is an object.'
        names.add(name)
    if choice not in _CHOICES and chosen_tool(choice) not in names:
        return f'"tool_choice" must be one of {", ".join(_CHOICES)}, or name one of the tools as OpenAI does.'
    if not isinstance(values.get("parallel_tool_calls", True), bool):
        return '"parallel_tool_calls" must be true or false.'
    return ""


def chosen_tool(choice: Any) -> str:
    """The function that a `tool_choice` names; empty where it names none."""
    function = choice.get("function") if isinstance(choice, dict) and choice.get("type") == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def is_ordered(sampling: job_pb2.Sampling) -> bool:
    """Whether it holds an object whose names have a known order that a model may see. The order of the request's own
    fields does not count."""
    return bool(sampling.extra_json) and any(_has_order(value) for value in fields(sampling).values())


def whole(value: Any) -> Any:
    """JSON with its whole numbers as integers: a double does not keep the difference, and servers refuse `"seed":
    5.0`."""
    if isinstance(value, dict):
        return {name: whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_LARGEST = int(sys.float_info.max)
_TOO_LARGE = "contains a number that is too large"
_TOO_DEEP = f"nests more than {MOST_DEPTH} objects and arrays"


def _has_order(value: Any) -> bool:
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_has_order, value.values()))
    return isinstance(value, list) and any(map(_has_order, value))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("has the same name twice in one object")
    return made


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(_TOO_LARGE)
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("contains a number with too many digits") from None


def _constant(text: str) -> NoReturn:
    raise ValueError(f"contains {text}, which is not valid JSON")


_decode = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_int=_whole, parse_constant=_constant
).decode
