"""The rows that ask a judge: what they are called, and what their metadata says. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

PLACE = re.compile(r"(?s)((.+)/([0-9]{1,9})/([0-9]{1,9}))(?:#[0-9]+)?")
"""The name of a row: the place of the judged answer, which is its task, item and repeat, and the number of a further
judgement."""
_OTHER = "other"


def name(place: str, number: int) -> str:
    """Of the row that asks for an answer's judgement with this number, counted from 1."""
    return place if number == 1 else f"{place}#{number}"


def metadata(task: str, item: int, repeat: int, number: int, judgements: int, other_first: bool) -> dict[str, Any]:
    """`judgements` are those of the answer; `other_first`: of two answers the judged one stands second."""
    found = {"task": task, "item": item, "repeat": repeat, "judgement": number, "judgements": judgements}
    return found | ({"first": _OTHER} if other_first else {})


def other_first(metadata: str) -> bool:
    """Of a row's metadata as JSON."""
    return bool(metadata) and json.loads(metadata).get("first") == _OTHER


def group(custom_id: str, metadata: str) -> str:
    """The judged answer, by task, item and repeat, of which several judgements depend on each other. Empty for a row
    that asks for its only judgement, and for other rows."""
    judgements = json.loads(metadata).get("judgements") if metadata else None
    found = PLACE.fullmatch(custom_id)
    return found[1] if found and isinstance(judgements, int) and judgements > 1 else ""
