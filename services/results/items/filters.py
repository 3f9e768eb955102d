"""Which items a request means: the job's, of one task or all, that satisfy conditions and that a filter chooses.

In SQL, by queries/items/judged_items.sql. Only what is asked for is in the SQL, so that no other column is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

from services.errors import InvalidRequestError, NotFoundError
from services.results.items.scores import Score, score_of
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import CALLS
from services.results.visibility import Visibility
from services.words import refusals
from services.words.enums import ITEM_FILTERS, ITEM_ORDERS, VERDICTS
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest

_BESIDE = ("different", "regressed", "improved")

_SEARCHED = ("prompt", "response", "prediction", "reference", "error")
_OBJECT = "nullif(metadata, '')"
_VALUES = f"len(list_filter(json_extract_string({_OBJECT}, '$.*'), lambda v: contains(lower(v), lower({{text}})))) > 0"
_Part = tuple[str, dict[str, Any]]
_ORDERS = {"item": "0", "slowest": "-round(latency_ms * 1000)", "longest": "-output_tokens"}
"""By which whole number items are ordered, in SQL."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """`sql` begins a query of the chosen items of `job`, with its `parameters`; `choice` is the filter's name, `score`
    what items count."""

    job: job_pb2.Job
    choice: str
    score: Score
    sql: str
    parameters: dict[str, Any]


def choose(connection: Connection, request: ListItemsRequest, visible: Visibility) -> Chosen:
    """Raises NotFoundError for a job and a task that it does not have, InvalidRequestError for the rest."""
    job = job_reads.get_job(connection, request.job_id, visible)
    tasks = [plan.task for plan in job.plan]
    if request.task and tasks and request.task not in tasks:
        raise NotFoundError(f"Job {job.job_id} has no task {request.task!r}. Its tasks: {', '.join(tasks)}.")
    choice = ITEM_FILTERS.of(request.filter)
    if not choice:
        raise InvalidRequestError(refusals.not_valid(request.filter, "filter", ITEM_FILTERS), "filter")
    if not (order := ITEM_ORDERS.of(request.order)):
        raise InvalidRequestError(refusals.not_valid(request.order, "order", ITEM_ORDERS), "order")
    if request.baseline_job_id:
        job_reads.get_job(connection, request.baseline_job_id, visible)
    elif choice in _BESIDE:
        raise InvalidRequestError(
            f"The filter {choice} compares with another job. Set baseline_job_id.", "baseline_job_id"
        )
    archived_items.require(connection, *filter(None, (request.job_id, request.baseline_job_id)))
    score = score_of(job.plan)
    asked = condition(request.query, request.conditions, score, uploaded=job.spec.HasField("dataset"))
    where = {"job_id": request.job_id, "task": request.task, "choice": choice, **asked.parameters}
    # Without a baseline, the search for one would take half of a page's time.
    beside = query("items/items_alone")
    if request.baseline_job_id:
        beside, where = query("items/items_beside"), where | {"baseline": request.baseline_job_id}
    number = f"({_ORDERS[order]})::BIGINT"
    sql = query("items/judged_items").format(condition=asked.sql, beside=beside, order=number)
    return Chosen(job, choice, score, sql, where)


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that is true for the wanted items, with its parameters."""

    sql: str
    parameters: dict[str, Any]


def condition(
    text: str, asked: pb.ItemConditions, score: Score, of_job: str = "job_id = $job_id", *, uploaded: bool = True
) -> Condition:
    """`text` is ListItemsRequest.query; `of_job` is SQL that selects the rows' annotations, on the columns of the
    table. `uploaded`: the items are rows of a dataset, which have their own ids and metadata.

    Raises InvalidRequestError for an unknown verdict and for bounds that are not numbers."""
    parts = [
        *([_contains(text, uploaded)] if text else []),
        *_metadata(asked),
        *_length(asked),
        *_score(asked, score),
        *_verdicts(asked, of_job),
        *([("custom_id = $custom_id", {"custom_id": asked.custom_id})] if asked.custom_id else []),
        *_exact(asked),
    ]
    parameters: dict[str, Any] = {}
    for _, used in parts:
        parameters |= used
    return Condition(" AND ".join(f"({sql})" for sql, _ in parts) or "true", parameters)


def _contains(text: str, uploaded: bool) -> _Part:
    texts = (*_SEARCHED, "custom_id") if uploaded else _SEARCHED
    ways = [f"contains(lower({name}), lower($text))" for name in texts]
    ways.append(f"coalesce(contains(lower({CALLS}), lower($text)), false)")
    if uploaded:
        ways.append(f"coalesce({_VALUES.format(text='$text')}, false)")
    return " OR ".join(ways), {"text": text}


def _metadata(asked: pb.ItemConditions) -> Iterator[_Part]:
    """A field is a name, or a dotted path where no field has that name."""
    name, value = asked.metadata_field, {"metadata_value": asked.metadata_value}
    if name:
        held, paths = metadata_value(name)
        yield f"coalesce(contains(lower({held}), lower($metadata_value)), false)", paths | value
    elif asked.metadata_value:
        yield f"coalesce({_VALUES.format(text='$metadata_value')}, false)", value


def metadata_value(name: str) -> tuple[str, dict[str, str]]:
    """SQL of a field's value as text on the columns of `items`, and its parameters. `name` as in ItemConditions."""
    paths = {"metadata_path": _pointer([name]), "metadata_way": _pointer(name.split("."))}
    either = (f"json_extract_string({_OBJECT}, ${path}::VARCHAR)" for path in paths)
    return f"coalesce({', '.join(either)})", paths


def _pointer(names: list[str]) -> str:
    """By RFC 6901."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def _length(asked: pb.ItemConditions) -> Iterator[_Part]:
    if asked.HasField("length_low"):
        yield "length(response) >= $length_low", {"length_low": asked.length_low}
    if asked.HasField("length_high"):
        yield "length(response) <= $length_high", {"length_high": asked.length_high}


def _exact(asked: pb.ItemConditions) -> Iterator[_Part]:
    if asked.HasField("reference"):
        yield "reference = $reference", {"reference": asked.reference}
    if asked.HasField("prediction"):
        yield "prediction = $prediction", {"prediction": asked.prediction}


def _score(asked: pb.ItemConditions, score: Score) -> Iterator[_Part]:
    for name, sign in (("score_low", ">="), ("score_high", "<=")):
        if asked.HasField(name):
            bound = getattr(asked, name)
            if isnan(bound):
                raise InvalidRequestError(f"{name} is not a number.", f"conditions.{name}")
            yield f"coalesce({score.sql} {sign} ${name}, false)", {name: bound, **score.parameters}


def _verdicts(asked: pb.ItemConditions, of_job: str) -> Iterator[_Part]:
    verdicts = set(asked.verdicts)
    if unknown := verdicts - set(pb.Annotation.Verdict.values()):
        raise InvalidRequestError(refusals.not_valid(max(unknown), "verdict", VERDICTS), "conditions.verdicts")
    if not verdicts:
        return
    held = f"SELECT job_id, task, item, repeat FROM present_annotations WHERE {of_job} AND verdict"
    ways = []
    if given := sorted(verdicts - {pb.Annotation.VERDICT_UNSPECIFIED}):
        ways.append(f"(job_id, task, item, repeat) IN ({held} IN ({', '.join(map(str, given))}))")
    if pb.Annotation.VERDICT_UNSPECIFIED in verdicts:
        ways.append(f"(job_id, task, item, repeat) NOT IN ({held} <> {pb.Annotation.VERDICT_UNSPECIFIED})")
    yield " OR ".join(ways), {}
