"""Further conditions on the items of a page, from its address."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping

from services.words.enums import VERDICTS
from services.words.fields import INT32_MAX, decimal
from touchstone.v1 import results_service_pb2

MOST_COLUMNS = 6
NAMES = ("metadata_field", "metadata_value", "length_low", "length_high", "score_low", "score_high", "verdict")
VERDICT_CHOICES = (("", "Any"), ("golden", "golden"), ("fix", "fix"), ("wrong", "wrong"), ("none", "not judged"))
MOST_FIELDS = 100
MOST_NAMED = 4_000
"""Characters of names of metadata fields in an address."""
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|\Z)')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def read(query: Mapping[str, str]) -> dict[str, str]:
    """The given conditions that can be met; a page is not an API, so others are dropped."""
    given = {name: query.get(name, "").strip()[:200] for name in NAMES}
    kept = {name: text for name, text in given.items() if text and _fits(name, text)}
    if "metadata_value" not in kept:
        # A field alone is not a condition.
        kept.pop("metadata_field", None)
    return kept


def _fits(name: str, text: str) -> bool:
    if name == "verdict":
        return text in VERDICTS
    if name.startswith("length_"):
        return text.isascii() and text.isdecimal() and int(text[:12]) <= INT32_MAX
    if name.startswith("score_"):
        return _number(text) is not None
    return True


def _number(text: str) -> float | None:
    value = decimal(text)
    return value if value is not None and math.isfinite(value) else None


def conditions_of(
    kept: Mapping[str, str], cell: Mapping[str, str] | None = None
) -> results_service_pb2.ItemConditions | None:
    """`cell` holds exact texts: `reference`, and `extracted` of the answer that was read. None without conditions."""
    if not kept and not cell:
        return None
    conditions = results_service_pb2.ItemConditions(
        metadata_field=kept.get("metadata_field", ""), metadata_value=kept.get("metadata_value", "")
    )
    for name, field in (("reference", "reference"), ("extracted", "prediction")):
        if cell and name in cell:
            setattr(conditions, field, cell[name])
    for name in ("length_low", "length_high"):
        if name in kept:
            setattr(conditions, name, int(kept[name]))
    for name in ("score_low", "score_high"):
        if name in kept:
            setattr(conditions, name, float(kept[name]))
    if "verdict" in kept:
        conditions.verdicts.append(VERDICTS[kept["verdict"]])
    return conditions


def columns(named: str, order: str) -> list[str]:
    """Metadata fields that a list of rows shows instead of the prompt: those named, with commas between them and as
    `written` has them, else the one that orders the rows."""
    wanted = [
        name.strip() if quoted is None else quoted.replace('""', '"')
        for quoted, name in (one.groups() for one in _NAME.finditer(named))
        if quoted is not None or name.strip()
    ]
    field, _ = ordered_by(order)
    return list(dict.fromkeys(wanted))[:MOST_COLUMNS] or [*filter(None, [field])]


def written(name: str) -> str:
    """A field's name as `columns` and `ordered_by` read it: in quotes, quotes in it doubled, where it needs them."""
    plain = name and name == name.strip() and not name.startswith("-") and "," not in name and '"' not in name
    return name if plain else '"' + name.replace('"', '""') + '"'


def ordered_by(order: str) -> tuple[str, bool]:
    """The field that orders the rows, empty without one, and whether descending: after a "-"."""
    name = order.removeprefix("-")
    quoted = _QUOTED.fullmatch(name)
    return quoted[1].replace('""', '"') if quoted else name, name != order


def fields_of(metadata: Iterable[str]) -> list[str]:
    """Names of metadata fields in these JSON objects, as they first appear."""
    found: dict[str, None] = {}
    for text in metadata:
        found.update(dict.fromkeys(members(text)))
    return list(found)[:MOST_FIELDS]


def members(text: str) -> dict[str, str]:
    """A JSON object's values by name, each as text; empty for anything else, such as a cut object."""
    try:
        held = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(held, dict):
        return {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for name, value in held.items()
    }
