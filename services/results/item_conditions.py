"""What items must satisfy, as SQL over rows of `items`: a text that they contain, and further conditions.

Only what is asked for is in the SQL, so that no other column is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

from services.errors import InvalidRequestError
from services.results.item_scores import Score
from touchstone.v1 import results_service_pb2 as pb

_SEARCHED = ("prompt", "response", "prediction", "reference", "error")
_OBJECT = "nullif(metadata, '')"
_VALUES = f"len(list_filter(json_extract_string({_OBJECT}, '$.*'), lambda v: contains(lower(v), lower({{text}})))) > 0"
_Part = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that is true of the items wanted, with its parameters."""

    sql: str
    parameters: dict[str, Any]


def condition(
    text: str, asked: pb.ItemConditions, score: Score, of_job: str = "job_id = $job_id", *, uploaded: bool = True
) -> Condition:
    """`text` is ListItemsRequest.query; `of_job` is SQL that holds of the rows' annotations, on the columns of the
    table. `uploaded`: the items are rows of a dataset, which have ids and metadata of their own.

    Raises InvalidRequestError for a verdict that is none and for bounds that are no numbers."""
    parts = [
        *([_contains(text, uploaded)] if text else []),
        *_metadata(asked),
        *_length(asked),
        *_score(asked, score),
        *_verdicts(asked, of_job),
        *([("custom_id = $custom_id", {"custom_id": asked.custom_id})] if asked.custom_id else []),
    ]
    parameters: dict[str, Any] = {}
    for _, used in parts:
        parameters |= used
    return Condition(" AND ".join(f"({sql})" for sql, _ in parts) or "true", parameters)


def _contains(text: str, uploaded: bool) -> _Part:
    texts = (*_SEARCHED, "custom_id") if uploaded else _SEARCHED
    ways = [f"contains(lower({name}), lower($text))" for name in texts]
    if uploaded:
        ways.append(f"coalesce({_VALUES.format(text='$text')}, false)")
    return " OR ".join(ways), {"text": text}


def _metadata(asked: pb.ItemConditions) -> Iterator[_Part]:
    """A field is a name, or names joined by points where none is called so."""
    name, value = asked.metadata_field, {"metadata_value": asked.metadata_value}
    if name:
        paths = {"metadata_path": _pointer([name]), "metadata_way": _pointer(name.split("."))}
        either = (f"json_extract_string({_OBJECT}, ${path}::VARCHAR)" for path in paths)
        yield f"coalesce(contains(lower(coalesce({', '.join(either)})), lower($metadata_value)), false)", paths | value
    elif asked.metadata_value:
        yield f"coalesce({_VALUES.format(text='$metadata_value')}, false)", value


def _pointer(names: list[str]) -> str:
    """By RFC 6901."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def _length(asked: pb.ItemConditions) -> Iterator[_Part]:
    if asked.HasField("length_low"):
        yield "length(response) >= $length_low", {"length_low": asked.length_low}
    if asked.HasField("length_high"):
        yield "length(response) <= $length_high", {"length_high": asked.length_high}


def _score(asked: pb.ItemConditions, score: Score) -> Iterator[_Part]:
    for name, sign in (("score_low", ">="), ("score_high", "<=")):
        if asked.HasField(name):
            bound = getattr(asked, name)
            if isnan(bound):
                raise InvalidRequestError(f"{name} is no number.", f"conditions.{name}")
            yield f"coalesce({score.sql} {sign} ${name}, false)", {name: bound, **score.parameters}


def _verdicts(asked: pb.ItemConditions, of_job: str) -> Iterator[_Part]:
    verdicts = set(asked.verdicts)
    if unknown := verdicts - set(pb.Annotation.Verdict.values()):
        raise InvalidRequestError(
            f"verdict is {min(unknown)}; it may be 0 to {max(pb.Annotation.Verdict.values())}.", "conditions.verdicts"
        )
    if not verdicts:
        return
    held = f"SELECT job_id, task, item, repeat FROM present_annotations WHERE {of_job} AND verdict"
    ways = []
    if given := sorted(verdicts - {pb.Annotation.VERDICT_UNSPECIFIED}):
        ways.append(f"(job_id, task, item, repeat) IN ({held} IN ({', '.join(map(str, given))}))")
    if pb.Annotation.VERDICT_UNSPECIFIED in verdicts:
        ways.append(f"(job_id, task, item, repeat) NOT IN ({held} <> {pb.Annotation.VERDICT_UNSPECIFIED})")
    yield " OR ".join(ways), {}
