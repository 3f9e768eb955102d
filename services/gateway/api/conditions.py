"""What else an item must satisfy: parameters of every list of items, and annotations as answers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.gateway import jobs
from services.gateway.api.checks import integer, number, one_of, text
from services.gateway.api.query import Parameter
from services.gateway.api.schema import STRING, TIME, enum, null, shape
from services.gateway.parameters import INT32_MAX
from touchstone.v1 import results_service_pb2

_VERDICT = results_service_pb2.Annotation
VERDICTS = {
    "golden": _VERDICT.VERDICT_GOLDEN,
    "fix": _VERDICT.VERDICT_FIX,
    "wrong": _VERDICT.VERDICT_WRONG,
    "none": _VERDICT.VERDICT_UNSPECIFIED,
}
"""`none` takes a verdict back; of a list, it means items without one."""
_NAMES = {number_: name for name, number_ in VERDICTS.items()}
_MOST_SCORE = 1e12

CONDITIONS = (
    Parameter("custom_id", text(512), "Only the item with this id of its own.", ""),
    Parameter("metadata_field", text(200), "Metadata field that holds `metadata_value`; any when absent.", ""),
    Parameter("metadata_value", text(200), "Text that a metadata value contains, in upper or lower case.", ""),
    Parameter("length_low", integer(0, INT32_MAX), "Fewest characters of the response."),
    Parameter("length_high", integer(0, INT32_MAX), "Most characters of the response."),
    Parameter("score_low", number(-_MOST_SCORE, _MOST_SCORE), "Least score."),
    Parameter("score_high", number(-_MOST_SCORE, _MOST_SCORE), "Greatest score."),
    Parameter("verdict", one_of(*VERDICTS), "What a person said of the answer; `none` for no verdict.", ""),
)


def conditions_of(query: Mapping[str, Any]) -> results_service_pb2.ItemConditions | None:
    """None where nothing is asked."""
    given = {name: query[name] for name in _PLAIN if query[name] not in (None, "")}
    if query["verdict"]:
        given["verdicts"] = [VERDICTS[query["verdict"]]]
    return results_service_pb2.ItemConditions(**given) if given else None


_PLAIN = tuple(parameter.name for parameter in CONDITIONS if parameter.name != "verdict")

ANNOTATION = shape(
    {
        "verdict": enum(*(name for name in VERDICTS if name != "none")),
        "corrected_answer": null(STRING),
        "note": null(STRING),
        "author": STRING,
        "annotated_at": null(TIME),
    },
    name="Annotation",
)


def annotation_body(stored: results_service_pb2.StoredItem) -> dict[str, Any] | None:
    """None for an item that nobody has judged."""
    held = stored.annotation
    if not held.verdict:
        return None
    return {
        "verdict": _NAMES[held.verdict],
        "corrected_answer": held.corrected_answer or None,
        "note": held.note or None,
        "author": held.author,
        "annotated_at": jobs.iso(held.annotated_at),
    }
