"""Further conditions on items: parameters of every list of items, and annotations as answers give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.gateway.fields.checks import integer, number, one_of, text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import STRING, TIME, about, enum, null, shape
from services.gateway.reads import jobs
from services.words.enums import VERDICTS
from services.words.fields import INT32_MAX
from touchstone.v1 import results_service_pb2

_MOST_SCORE = 1e12

CONDITIONS = (
    Parameter("custom_id", text(512), "Only the row with this `custom_id`.", ""),
    Parameter("reference", text(512), "Only items with this right answer.", ""),
    Parameter("prediction", text(512), "Only items from whose response this answer was read.", ""),
    Parameter(
        "metadata_field",
        text(200),
        "The metadata field that `metadata_value` is looked for in. Any field if absent.",
        "",
    ),
    Parameter("metadata_value", text(200), "A text that a metadata field contains, in upper or lower case.", ""),
    Parameter("length_low", integer(0, INT32_MAX), "The fewest characters of the response."),
    Parameter("length_high", integer(0, INT32_MAX), "The most characters of the response."),
    Parameter(
        "score_low", number(-_MOST_SCORE, _MOST_SCORE), "The lowest score of the item in the task's first metric."
    ),
    Parameter(
        "score_high", number(-_MOST_SCORE, _MOST_SCORE), "The highest score of the item in the task's first metric."
    ),
    Parameter("verdict", one_of(*VERDICTS), "The verdict of a person. `none` means no verdict.", ""),
)


def conditions_of(query: Mapping[str, Any]) -> results_service_pb2.ItemConditions | None:
    """None without conditions."""
    given = {name: query[name] for name in _PLAIN if query[name] not in (None, "")}
    if query["verdict"]:
        given["verdicts"] = [VERDICTS[query["verdict"]]]
    return results_service_pb2.ItemConditions(**given) if given else None


_PLAIN = tuple(parameter.name for parameter in CONDITIONS if parameter.name != "verdict")

ANNOTATION = shape(
    {
        "verdict": about(enum(*(name for name in VERDICTS if name != "none")), "The person's verdict."),
        "corrected_answer": about(null(STRING), "What the answer should have been."),
        "note": about(null(STRING), "The person's note."),
        "author": about(STRING, "The person."),
        "annotated_at": about(null(TIME), "When."),
    },
    name="Annotation",
)


def annotation_body(stored: results_service_pb2.StoredItem) -> dict[str, Any] | None:
    """None for an item without a verdict."""
    held = stored.annotation
    if not held.verdict:
        return None
    return {
        "verdict": VERDICTS.of(held.verdict),
        "corrected_answer": held.corrected_answer or None,
        "note": held.note or None,
        "author": held.author,
        "annotated_at": jobs.iso(held.annotated_at),
    }
