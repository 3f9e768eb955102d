"""The tool calls that a dataset's row expects, as its reference writes them. Pure.

The service that takes an upload checks references in the same way as those that score answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from services import json_values

MOST_CALLS = 128
MOST_ANSWERS = 100
MOST_OF_ANSWERS = 1000
"""Calls in all right answers of one row. An answer is compared with each of them."""
OPTIONAL = ""
"""Among the allowed values of an argument: the call may leave the argument out."""
_OTHER_FIELDS = frozenset(("name", "type", "id", "call_id", "index", "status"))
"""Fields of a call in OpenAI's forms that say nothing of its arguments."""
_FORMS = (
    'is not a list of calls; write each as {"name": "f", "arguments": {"a": 1}}, as OpenAI\'s API does, or with the '
    'allowed values of each argument: {"f": {"a": [1, 2]}}'
)


def answers(value: Any) -> list[Any]:
    """The right answers in a reference, each for `expected`. A list of lists has several; `[]` is one, which expects
    that nothing is called. Raises ValueError, as `expected`."""
    if not isinstance(value, list) or not value or not all(isinstance(one, list) for one in value):
        return [value]
    if len(value) > MOST_ANSWERS:
        raise ValueError(f"has {len(value):,} right answers; at most {MOST_ANSWERS} are allowed")
    if (count := sum(map(len, value))) > MOST_OF_ANSWERS:
        raise ValueError(f"has {count:,} calls in its right answers; at most {MOST_OF_ANSWERS:,} are allowed")
    return value


def expected(value: Any) -> list[dict[str, Any]]:
    """The calls of one right answer, in their order. Each has "name" and either "arguments", an object, or "allowed":
    the allowed values of each argument, in the form of the Berkeley Function-Calling Leaderboard.

    Raises ValueError, with a clause that continues after "the reference", for anything else.
    """
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise ValueError(_FORMS)
    if len(value) > MOST_CALLS:
        raise ValueError(f"has {len(value):,} calls; at most {MOST_CALLS} are allowed")
    return [_call(one) for one in value]


def _call(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(_FORMS)
    inner = value.get("function")
    if isinstance(inner, dict) and isinstance(inner.get("name"), str):
        return _exact(inner)
    if isinstance(value.get("name"), str):
        return _exact(value)
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if isinstance(arguments, dict) and all(isinstance(allowed, list) and allowed for allowed in arguments.values()):
            # Names of tools have no dots; the leaderboard renames its functions in the same way.
            return {"name": _named(name.replace(".", "_")), "allowed": arguments}
    raise ValueError(_FORMS)


def _exact(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments")
    if "arguments" not in call and (others := call.keys() - _OTHER_FIELDS):
        # Those of other forms would be lost, and no call of an answer could be right.
        raise ValueError(f'has a call of {call["name"]!r} with {min(others)!r}; name its arguments "arguments"')
    if isinstance(arguments, str):
        try:
            arguments = json_values.parsed(arguments or "{}")
        except ValueError:
            arguments = ""
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise ValueError(f'has a call of {call["name"]!r} whose "arguments" are not a JSON object')
    return {"name": _named(call["name"]), "arguments": arguments}


def _named(name: str) -> str:
    if not name.strip():
        raise ValueError("has a call without a name")
    return name


def names(call: dict[str, Any]) -> Iterator[str]:
    """The arguments of an expected call."""
    yield from call.get("allowed", call.get("arguments", ()))
