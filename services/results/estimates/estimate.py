"""The time and cost of a run, estimated from the items of another run.

The intervals cover the random choice of the pilot's items. They do not cover further doubts:

- answers are drawn again: above temperature 0 their lengths vary even on the same items;
- the pilot's items are assumed to be a random sample, which the first items of an unfinished run are not;
- an endpoint under more load answers slower, and one that refuses calls (HTTP 429) makes them wait: latencies show
  neither, though calls that were made again count against the limit a minute;
- what is rare and long may not be among a few items at all;
- prices may change, and the provider's own batch prices are others;
- with several evaluators, or evaluators that come and go, more or fewer calls are made at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.errors import ConflictError, InvalidRequestError
from services.results.estimates.totals import Interval, looks_normal, total
from services.results.runs import job_reads
from services.results.statistics.metric_values import Floats
from services.results.storage import archived_items
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

FEWEST_ITEMS = 5
MOST_ITEMS = 10_000_000
MOST_AT_ONCE = 10_000

Tasks = npt.NDArray[np.object_]
_DRAWS, _SEED = 1_000, 7
_FEW = 12
"""Below this number, the spread of the logarithms is used as it is: a draw of it would be arbitrary."""
_MOST_SIMULATED = 256
"""The most concurrent calls in the simulation of a run's end."""
_MOST_SECONDS = 1_000
_SHORTEST_S, _LONGEST = 1e-6, 40.0


def estimate_run(
    connection: Connection,
    request: pb.EstimateRunRequest,
    per_minute: int = 0,
    visible: Visibility = EVERYTHING,
) -> pb.EstimateRunResponse:
    """`per_minute` is how many requests the endpoint takes per minute, 0 for any number.

    Raises NotFoundError for a job, ConflictError for one with too few answers, InvalidRequestError for the rest.
    """
    job = job_reads.get_job(connection, request.job_id, visible)
    archived_items.require(connection, job.job_id)
    dataset = _dataset(connection, job)
    sizes = {plan.task: plan.published_items or plan.items for plan in job.plan}
    whole = dataset.rows if dataset is not None else job.published_items or sum(sizes.values())
    # Characters are known only for the whole dataset.
    characters = dataset.prompt_characters if dataset is not None and request.items in (0, dataset.rows) else 0
    asked = {"job_id": job.job_id, "with_characters": characters > 0}
    found = connection.execute(query("estimates/pilot_items"), asked).fetchnumpy()
    pilot_items = len(found["item"])
    if pilot_items < FEWEST_ITEMS:
        raise ConflictError(
            f"Job {job.job_id} has {pilot_items} answered items; an estimate needs at least {FEWEST_ITEMS}. Wait, "
            "or start a pilot run with a higher limit."
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
        # Older runs have 0 for all if the provider does not count.
        if name == "cost_usd" or values.any()
    }
    pace = Pace(request.concurrency or _at_once(connection, job), per_minute)
    # Shares of tasks affect only the mean: the last call belongs to some task.
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
            refusals.between("concurrency", 0, MOST_AT_ONCE, zero="that of the first run"),
            "concurrency",
        )
    if not 0 <= request.items <= MOST_ITEMS:
        raise InvalidRequestError(refusals.between("items", 0, MOST_ITEMS, zero="all items"), "items")
    if not request.items and not whole:
        raise InvalidRequestError("The number of items is unknown. Set items.", "items")
    return request.items or whole


def _dataset(connection: Connection, job: job_pb2.Job) -> dataset_pb2.Dataset | None:
    """The dataset of a run as it is listed, deleted or not."""
    if job.spec.WhichOneof("work") != "dataset":
        return None
    found = first_row(connection, "SELECT dataset FROM datasets WHERE id = $id", {"id": job.spec.dataset.dataset_id})
    return None if found is None else dataset_pb2.Dataset.FromString(found[0])


def _at_once(connection: Connection, job: job_pb2.Job) -> int:
    """The calls that each evaluator was allowed, times the evaluators that answered."""
    ((evaluators,),) = connection.execute(
        "SELECT count(DISTINCT evaluator) FROM items WHERE job_id = $job_id AND NOT reused", {"job_id": job.job_id}
    ).fetchall()
    return max(1, job.receipt.concurrency) * max(1, int(evaluators))


def _column(found: Mapping[str, Any], name: str) -> Floats:
    return np.asarray(np.ma.filled(found[name], 0.0), dtype=float)


def _message(found: Interval) -> pb.Estimate:
    return pb.Estimate(value=found.value, low=found.low, high=found.high)


def weighted(values: Floats, tasks: Tasks, sizes: Mapping[str, int]) -> Floats:
    """The total of a run with `sizes` items of each task; the pilot may have had other shares. Tasks without a value
    are assumed to be like the others.

    If every task has two values or more, the differences between tasks are known and not random: values then vary only
    around their task's mean.
    """
    names, place, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    if len(names) == 1:
        return values
    size = np.array([sizes.get(name, 0) for name in names], dtype=float)
    if not size.sum():
        return values
    weight: Floats = (size / size.sum() / counts * len(values))[place]
    if counts.min() < 2:
        scaled: Floats = weight * values
        return scaled
    means = np.bincount(place, values) / counts
    apart: Floats = (values - means[place]) * weight * np.sqrt(counts / (counts - 1))[place]
    return apart + float(means @ size / size.sum())


def by_ratio(values: Floats, sizes: Floats, mean_size: float) -> Floats:
    """The total of values that grow with a size whose mean over all items is known, such as tokens with characters.

    If the ratio explains nothing, the values are used as they are.
    """
    if sizes.min() <= 0 or mean_size <= 0:
        return values
    ratio = values.mean() / sizes.mean()
    apart = (values - ratio * sizes) * mean_size / sizes.mean()
    return apart + ratio * mean_size if apart.var() < values.var() else values


@dataclass(frozen=True, slots=True)
class Pace:
    """At most `at_once` calls at a time, 1 or more, and `per_minute` calls per minute, 0 for any number."""

    at_once: int
    per_minute: int = 0


def duration(seconds: Floats, calls: Floats, answers: int, pace: Pace) -> Interval:
    """The duration of this many answers, of which some, 2 or more, took these seconds and calls each.

    A free slot takes the next answer at once, so the work is spread evenly until none waits; then the call in each slot
    ends. A call that is met at a random moment tends to be a long one. If the limit per minute takes longer, that
    counts.

    Simulated, as no formula gives the end of the last of many calls. If latencies look lognormal, they are drawn from
    that distribution, with its two parameters as uncertain as the pilot leaves them; otherwise they are drawn from the
    pilot's.
    """
    places = min(pace.at_once, answers)
    # Evenly over their lengths: more draws would only take longer.
    drawn = _drawn(np.sort(seconds)[:: 1 + len(seconds) // _MOST_SECONDS], answers, places)
    low, high = (float(end) for end in np.percentile(drawn, [2.5, 97.5]))
    value = float(np.median(drawn))
    if pace.per_minute:
        limited = total(calls, answers, anew=True).times(60 / pace.per_minute)
        value, low, high = max(value, limited.value), max(low, limited.low), max(high, limited.high)
    return Interval(value, low, high)


def _drawn(seconds: Floats, answers: int, places: int) -> Floats:
    rng = np.random.default_rng(_SEED)
    shape = (_DRAWS, min(places, _MOST_SIMULATED))
    logs = np.log(np.maximum(seconds, _SHORTEST_S))
    if len(seconds) < _FEW or looks_normal(logs):
        mean, spread = _figures(logs, rng)
        if answers <= places:
            each = _exp(mean + spread * rng.standard_normal(shape))
            return np.asarray(each.max(axis=1))
        variance = spread**2
        of_work = np.log1p(np.expm1(np.minimum(variance, 50.0)) / answers)
        work = answers * _exp(mean + (variance - of_work) / 2 + np.sqrt(of_work) * rng.standard_normal((_DRAWS, 1)))
        under_way = _exp(mean + variance + spread * rng.standard_normal(shape))
    else:
        again = rng.choice(seconds, (_DRAWS, len(seconds)))
        if answers <= places:
            return np.asarray(_each(again, shape, rng).max(axis=1))
        error = again.std(axis=1, keepdims=True) * math.sqrt(answers)
        work = np.maximum(answers * again.mean(axis=1, keepdims=True) + error * rng.standard_normal((_DRAWS, 1)), 0.0)
        under_way = _each(again, shape, rng, by_length=True)
    left: Floats = under_way * rng.random(shape)
    drawn: Floats = work[:, 0] / places + left.max(axis=1) - left.mean(axis=1)
    return drawn


def _figures(logs: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of mean and standard deviation, as columns."""
    n = len(logs)
    variance = np.full((_DRAWS, 1), logs.var(ddof=1))
    chi_square = rng.chisquare(n - 1, (_DRAWS, 1)) / (n - 1)
    mean = logs.mean() + np.sqrt(variance / n / chi_square) * rng.standard_normal((_DRAWS, 1))
    spread: Floats = np.sqrt(variance if n < _FEW else variance / chi_square)
    return mean, spread


def _exp(logs: Floats) -> Floats:
    """With only a few values, some draws are arbitrary."""
    return np.asarray(np.exp(np.minimum(logs, _LONGEST)))


def _each(values: Floats, shape: tuple[int, int], rng: np.random.Generator, *, by_length: bool = False) -> Floats:
    """Some values of every row, drawn with equal weight or by their length."""
    weights = np.cumsum(values if by_length else np.ones_like(values), axis=1)
    weights = weights / np.maximum(weights[:, -1:], _SHORTEST_S)
    # Rows stacked, so that one search serves all.
    rows = np.arange(shape[0])[:, None]
    found = np.searchsorted((weights + rows).ravel(), (rng.random(shape) + rows).ravel())
    places = np.minimum(found.reshape(shape) - rows * values.shape[1], values.shape[1] - 1)
    chosen: Floats = np.take_along_axis(values, places, axis=1)
    return chosen
