"""Which items a request means: the job's, of one task or all, that satisfy conditions and that a filter chooses. In
SQL, by queries/judged_items.sql.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.errors import InvalidRequestError, NotFoundError
from services.results import job_reads
from services.results.database import Connection, query
from services.results.item_conditions import condition
from services.results.item_scores import Score, score_of
from services.results.visibility import Visibility
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ListItemsRequest

CHOICES = {
    ListItemsRequest.FILTER_UNSPECIFIED: "all",
    ListItemsRequest.FILTER_FAILURES: "failures",
    ListItemsRequest.FILTER_UNPARSED: "unparsed",
    ListItemsRequest.FILTER_ERRORS: "errors",
    ListItemsRequest.FILTER_CORRECT: "correct",
    ListItemsRequest.FILTER_DIFFERENT: "different",
    ListItemsRequest.FILTER_REGRESSED: "regressed",
    ListItemsRequest.FILTER_IMPROVED: "improved",
    ListItemsRequest.FILTER_TRUNCATED: "truncated",
    ListItemsRequest.FILTER_REFUSED: "refused",
    ListItemsRequest.FILTER_FINAL: "final",
}
"""In the order in which queries/item_page.sql counts them."""

_BESIDE = ("different", "regressed", "improved")


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
        raise NotFoundError(f"Job {job.job_id} has no task {request.task!r}. It has: {', '.join(tasks)}.")
    choice = CHOICES.get(request.filter)
    if choice is None:
        raise InvalidRequestError(f"filter is {request.filter}; it may be 0 to {max(CHOICES)}.", "filter")
    if request.baseline_job_id:
        job_reads.get_job(connection, request.baseline_job_id, visible)
    elif choice in _BESIDE:
        raise InvalidRequestError(
            f"Items that are {choice} are so beside another job's. Set baseline_job_id.", "baseline_job_id"
        )
    score = score_of(job.plan)
    asked = condition(request.query, request.conditions, score, uploaded=job.spec.HasField("dataset"))
    where = {"job_id": request.job_id, "task": request.task, "choice": choice, **asked.parameters}
    # Looking for no baseline would take half of a page's time.
    beside = query("items_alone")
    if request.baseline_job_id:
        beside, where = query("items_beside"), where | {"baseline": request.baseline_job_id}
    return Chosen(job, choice, score, query("judged_items").format(condition=asked.sql, beside=beside), where)
