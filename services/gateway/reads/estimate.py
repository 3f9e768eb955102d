"""How long a job will take, from the queue and the newest run of the same model: an estimate, given as a range."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services import rpc
from services.errors import TouchstoneError
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.words.jobs import is_rescore, suite_of
from touchstone.v1 import dataset_service_pb2, job_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2

_STORED_S = 0.002
"""Scoring a stored answer."""
_LOOK_BACK = 20
"""Runs of a model among which the one most like the new job is chosen."""


def items_of(suite: suite_pb2.Suite, tasks: list[str], limit: int) -> int:
    """Items that the chosen tasks hold, at most `limit` each; 0 when a task's size is not known, as in open suites."""
    chosen = [task for task in suite.tasks if not tasks or task.task in tasks]
    if any(not task.published_items for task in chosen):
        return 0
    return sum(min(task.published_items, limit) if limit else task.published_items for task in chosen)


def seconds_per_item(run: job_pb2.Job) -> float | None:
    """A finished run's wall time per item; None when it is unknown."""
    started, finished = jobs.moment(run.started_at), jobs.moment(run.finished_at)
    if not started or not finished or not run.progress.items_done or run.attempt > 1:
        return None
    return (finished - started).total_seconds() / run.progress.items_done


def ahead_of(queue: queue_pb2.Queue, user: str) -> int:
    """Waiting jobs that start before a new one of the user. Users take turns, as in the scheduler's queue; all jobs are
    assumed to have the same priority."""
    had = Counter(job.owner for job in queue.running)
    own = had[user] + sum(job.owner == user for job in queue.pending)
    ahead = 0
    for job in queue.pending:
        ahead += had[job.owner] <= own
        had[job.owner] += 1
    return ahead


def waiting_s(queue: queue_pb2.Queue, ahead: int) -> float | None:
    """Seconds until a job with this many others ahead starts; None when the end of running jobs is unknown."""
    free = queue.slots - len(queue.running)
    if ahead < free:
        return 0.0
    etas = [job.progress.eta_s for job in queue.running if job.progress.HasField("eta_s")]
    if not etas or not queue.slots:
        return None
    rounds = (ahead - max(free, 0)) // queue.slots
    return min(etas) + rounds * sum(etas) / len(etas)


async def newest_run(backend: Backend, model: str, suite: str, caller: rpc.Identity) -> job_pb2.Job | None:
    """The newest completed run of the model on the suite."""
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=1, model=model, suite=suite, states=[job_pb2.Job.STATE_COMPLETED], without_counts=True
    )
    answer = await backend.ask(backend.results.ListJobs, request, caller, timeout_s=1)
    return answer.jobs[0] if answer.jobs else None


async def like_runs(backend: Backend, spec: job_pb2.JobSpec, caller: rpc.Identity) -> list[job_pb2.Job]:
    """The model's newest completed runs that called it, the likest first: same suite, then endpoint, then mode."""
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=_LOOK_BACK, model=spec.model, states=[job_pb2.Job.STATE_COMPLETED], without_counts=True
    )
    answer = await backend.ask(backend.results.ListJobs, request, caller, timeout_s=1)

    work = suite_of(spec)

    def unlike(run: job_pb2.Job) -> tuple[bool, ...]:
        other = run.spec
        return (suite_of(run.spec) != work, other.endpoint != spec.endpoint, other.mode != spec.mode)

    return sorted((run for run in answer.jobs if not run.spec.HasField("reuse")), key=unlike)


async def judging_run(backend: Backend, endpoint: str, model: str, caller: rpc.Identity) -> job_pb2.Job | None:
    """The newest completed run in which the model judged, at this endpoint; None if it has not lately."""
    runs = await like_runs(backend, job_pb2.JobSpec(endpoint=endpoint, model=model), caller)
    return next((run for run in runs if run.spec.endpoint == endpoint and run.spec.HasField("judging")), None)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What runs together need, each estimated from a run of its model; `sources` are those. Cost is None where a price
    is not known."""

    seconds: results_service_pb2.Estimate
    input_tokens: results_service_pb2.Estimate
    output_tokens: results_service_pb2.Estimate
    cost_usd: results_service_pb2.Estimate | None
    sources: list[job_pb2.Job]


async def forecast(backend: Backend, runs: Sequence[job_pb2.Job], answers: int, caller: rpc.Identity) -> Forecast:
    """Runs of `answers` answers each, one after the other: ends of intervals are added, which is wider than needed.
    Raises what the results service answers, such as ConflictError for a run with too few answers."""
    found = await asyncio.gather(
        *(
            backend.ask(
                backend.results.EstimateRun,
                results_service_pb2.EstimateRunRequest(job_id=run.job_id, items=answers),
                caller,
            )
            for run in runs
        )
    )
    priced = all(one.HasField("cost_usd") for one in found)
    return Forecast(
        seconds=_sum(one.duration_s for one in found),
        input_tokens=_sum(one.input_tokens for one in found),
        output_tokens=_sum(one.output_tokens for one in found),
        cost_usd=_sum(one.cost_usd for one in found) if priced else None,
        sources=list(runs),
    )


def _sum(parts: Iterable[results_service_pb2.Estimate]) -> results_service_pb2.Estimate:
    whole = results_service_pb2.Estimate()
    for one in parts:
        whole.value += one.value
        whole.low += one.low
        whole.high += one.high
    return whole


DISAGREEMENT = 0.2
"""Share of items that only one of two models is assumed to answer rightly, before either has run."""
_QUANTILES = 1.959964 + 0.841621
"""Of a two-sided test at 5 % and of 80 % power."""


def smallest_difference(items: int) -> float:
    """The difference of two models, in shares of right answers, that this many items show with 80 % power.

    Source: Connor, Biometrics 43 (1987) 207, for a small difference: d = (z_α + z_β) √(ψ / n)."""
    return min(1.0, _QUANTILES * math.sqrt(DISAGREEMENT / items)) if items else 1.0


async def rows_of(backend: Backend, work: job_pb2.DatasetWork, caller: rpc.Identity) -> int:
    """Rows that a run over a dataset asks; 0 when the dataset is not known."""
    request = dataset_service_pb2.GetDatasetRequest(dataset_id=work.dataset_id)
    try:
        rows = (await backend.ask(backend.datasets.GetDataset, request, caller, timeout_s=1)).dataset.rows
    except TouchstoneError:
        return 0
    return min(rows, work.limit) if work.limit else rows


async def duration(backend: Backend, job: job_pb2.Job, items: int, caller: rpc.Identity) -> str | None:
    """The API's `estimated_duration` of a job with this many answers that was just queued; 0 means unknown. Never
    raises. None without facts: no run of the model, or an unknown wait in the queue."""
    try:
        queue_answer, runs = await asyncio.gather(
            backend.ask(backend.scheduler.GetQueue, scheduler_service_pb2.GetQueueRequest(), caller, timeout_s=1),
            like_runs(backend, job.spec, caller),
        )
    except TouchstoneError:
        return None
    pace = next((found for run in runs if (found := seconds_per_item(run)) is not None), None)
    if is_rescore(job.spec):
        pace = _STORED_S
    queue = queue_answer.queue
    pending = [waiting.job_id for waiting in queue.pending]
    ahead = pending.index(job.job_id) if job.job_id in pending else len(pending)
    wait = 0.0 if any(r.job_id == job.job_id for r in (*queue.running, *queue.scoring)) else waiting_s(queue, ahead)
    if not items or pace is None or wait is None:
        return None
    return spoken_range(wait + items * pace)


def spoken_range(seconds: float) -> str:
    """A range around an estimate, in minutes or hours."""
    low, high = 0.75 * seconds, 1.5 * seconds
    if high < 60:
        return "under 1 minute"
    if high < 2 * 3600:
        first, last = max(1, int(low // 60)), max(2, -int(-high // 60))
        return f"{first}-{last} minutes"
    if high < 48 * 3600:
        return f"{max(1, int(low // 3600))}-{-int(-high // 3600)} hours"
    return f"{max(1, int(low // 86400))}-{-int(-high // 86400)} days"
