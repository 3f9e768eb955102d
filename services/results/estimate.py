"""What a run would take, learned from the items of one that was made.

The intervals hold what chance does in choosing the pilot's items. Further doubts are not in them:

- answers are drawn anew: above temperature 0 their lengths vary even on the same items;
- the pilot's items are taken for a random sample, which the first items of an unfinished run are not;
- an endpoint under more load answers slower, and one that refuses calls (HTTP 429) makes them wait: latencies tell of
  neither, though calls that were made again count against the limit a minute;
- what is rare and long may not be among a few items at all;
- prices may change, and the provider's own batch prices are others;
- with several evaluators, or evaluators that come and go, more or fewer calls are made at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.errors import ConflictError, InvalidRequestError
from services.results import job_reads
from services.results.database import Connection, first_row, query
from services.results.pilot.durations import Pace, duration
from services.results.pilot.sample import by_ratio, weighted
from services.results.pilot.totals import Interval, total
from services.results.statistics import Floats
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

FEWEST_ITEMS = 5
MOST_ITEMS = 10_000_000
MOST_AT_ONCE = 10_000


def estimate_run(
    connection: Connection,
    request: pb.EstimateRunRequest,
    per_minute: int = 0,
    visible: Visibility = EVERYTHING,
) -> pb.EstimateRunResponse:
    """`per_minute` is how many requests the endpoint takes a minute, 0 for any number.

    Raises NotFoundError for a job, ConflictError for one with too few answers, InvalidRequestError for the rest.
    """
    job = job_reads.get_job(connection, request.job_id, visible)
    dataset = _dataset(connection, job)
    sizes = {plan.task: plan.published_items or plan.items for plan in job.plan}
    whole = dataset.rows if dataset is not None else job.published_items or sum(sizes.values())
    # Characters are known of the whole dataset alone.
    characters = dataset.prompt_characters if dataset is not None and request.items in (0, dataset.rows) else 0
    asked = {"job_id": job.job_id, "with_characters": characters > 0}
    found = connection.execute(query("pilot_items"), asked).fetchnumpy()
    pilot_items = len(found["item"])
    if pilot_items < FEWEST_ITEMS:
        raise ConflictError(
            f"Job {job.job_id} has {pilot_items} items with an answer. Estimate from {FEWEST_ITEMS} or more: wait, or "
            "make a pilot run with a higher limit."
        )
    items = _checked(request, whole)
    repeats = max((plan.repeats for plan in job.plan), default=1) or 1
    columns = {
        name: _column(found, name)
        for name in ("input_tokens", "output_tokens", "cost_usd")
        if not np.ma.getmaskarray(found[name]).any()
    }
    if characters and "input_tokens" in columns:
        columns["input_tokens"] = by_ratio(columns["input_tokens"], _column(found, "characters"), characters / items)
    totals = {
        name: _message(total(weighted(values, found["task"], sizes), items).times(repeats))
        for name, values in columns.items()
        # Runs of before tell 0 of all where the provider does not count.
        if name == "cost_usd" or values.any()
    }
    pace = Pace(request.concurrency or _at_once(connection, job), per_minute)
    # Shares of tasks count by the mean alone: an ending call is one of some task.
    seconds, calls = _column(found, "seconds"), _column(found, "calls")
    mean = seconds.mean()
    scale = weighted(seconds, found["task"], sizes).mean() / mean if mean > 0 else 1.0
    return pb.EstimateRunResponse(
        items=items,
        pilot_items=pilot_items,
        duration_s=_message(duration(seconds * scale, np.maximum(calls, 1.0), items * repeats, pace)),
        **totals,
    )


def _checked(request: pb.EstimateRunRequest, whole: int) -> int:
    if not 0 <= request.concurrency <= MOST_AT_ONCE:
        raise InvalidRequestError(
            f"concurrency is {request.concurrency}; it may be 1 to {MOST_AT_ONCE:,}, or 0 for the first run's.",
            "concurrency",
        )
    if not 0 <= request.items <= MOST_ITEMS:
        raise InvalidRequestError(
            f"items is {request.items}; it may be 1 to {MOST_ITEMS:,}, or 0 for all that there are.", "items"
        )
    if not request.items and not whole:
        raise InvalidRequestError("How many items there are is not known. Set items.", "items")
    return request.items or whole


def _dataset(connection: Connection, job: job_pb2.Job) -> dataset_pb2.Dataset | None:
    """Of a run over one: as it is listed, deleted or not."""
    if job.spec.WhichOneof("work") != "dataset":
        return None
    found = first_row(connection, "SELECT dataset FROM datasets WHERE id = $id", {"id": job.spec.dataset.dataset_id})
    return None if found is None else dataset_pb2.Dataset.FromString(found[0])


def _at_once(connection: Connection, job: job_pb2.Job) -> int:
    """What each evaluator was allowed, times those that answered."""
    ((evaluators,),) = connection.execute(
        "SELECT count(DISTINCT evaluator) FROM items WHERE job_id = $job_id AND NOT reused", {"job_id": job.job_id}
    ).fetchall()
    return max(1, job.receipt.concurrency) * max(1, int(evaluators))


def _column(found: Mapping[str, Any], name: str) -> Floats:
    return np.asarray(np.ma.filled(found[name], 0.0), dtype=float)


def _message(found: Interval) -> pb.Estimate:
    return pb.Estimate(value=found.value, low=found.low, high=found.high)
