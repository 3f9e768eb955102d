"""Runs over datasets: live ones from the scheduler, finished ones, and the page that has the runs over all datasets."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services.errors import TouchstoneError
from services.gateway import context
from services.gateway.fields.job import PILOT_LABEL
from services.gateway.pages.display import palette
from services.gateway.pages.jobs.history import JobRow, job_rows
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

MOST_FINISHED = 20
"""Finished runs on a page."""
MOST_ESTIMATES = 3


@dataclass(frozen=True, slots=True)
class Finished:
    """Finished runs, newest first. `estimates` are what the newest pilots say, by job."""

    rows: list[JobRow]
    total: int
    more: str
    """The token of older ones."""
    estimates: dict[str, results_service_pb2.EstimateRunResponse]


async def ask_live(request: Request) -> list[job_pb2.Job]:
    """Every live job over a dataset that the caller may see, running ones first. Raises UnavailableError."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.GetQueueRequest()
    queue = (await ctx.backend.ask(ctx.backend.scheduler.GetQueue, call, caller)).queue
    return [job for job in (*queue.running, *queue.scoring, *queue.pending) if job.spec.HasField("dataset")]


def counted(live: Iterable[job_pb2.Job]) -> Counter[str]:
    """Live jobs by dataset."""
    return Counter(job.spec.dataset.dataset_id for job in live)


def over(dataset_id: str, live: Iterable[job_pb2.Job]) -> list[job_pb2.Job]:
    return [job for job in live if job.spec.dataset.dataset_id == dataset_id]


def mark(live: Sequence[job_pb2.Job]) -> str:
    """A mark of these jobs: another mark means that one began or ended."""
    return hashlib.sha256(" ".join(sorted(job.job_id for job in live)).encode()).hexdigest()[:12]


async def finished(request: Request, dataset_id: str, live: Iterable[job_pb2.Job], after: str = "") -> Finished:
    """The newest finished runs over a dataset, or over all of them without an id. Raises what the results service
    answers."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ResultsServiceListJobsRequest(
        suite=dataset_id, datasets=True, page_size=MOST_FINISHED, page_token=after, with_scores=True
    )
    answer = await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)
    going = {job.job_id for job in live}
    stored = [job for job in answer.jobs if job.job_id not in going]
    # A job that left the queue a moment ago may still be stored in its earlier state.
    newest = await asyncio.gather(*(_now(request, job) for job in stored))
    rows = [row for row in job_rows(newest, answer.scores) if is_finished(row.job)]
    pilots = [row.job for row in rows if PILOT_LABEL in row.job.spec.labels][:MOST_ESTIMATES]
    told = await asyncio.gather(*(_estimate(request, job) for job in pilots))
    estimates = {job.job_id: one for job, one in zip(pilots, told, strict=True) if one is not None}
    total = max(0, answer.total_size - len(answer.jobs) + len(rows))
    return Finished(rows, total, answer.next_page_token, estimates)


async def slots(request: Request, live: Iterable[job_pb2.Job], past: Finished | None) -> dict[tuple[str, str], int]:
    """Colours of the models that these runs are of."""
    try:
        keys = await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        keys = []
    shown = [*live, *(row.job for row in (past.rows if past else []))]
    return palette.assign(keys, ((job.spec.endpoint, job.spec.model) for job in shown if not job.baseline))


async def all_runs(request: Request) -> Response:
    """The page of runs over all datasets. htmx gets live runs alone, as `changes` says, and 204 while the scheduler is
    silent."""
    asks, after = is_fragment(request), request.query_params.get("after", "")
    active: list[job_pb2.Job] = []
    past, problem = None, ""
    try:
        active = await ask_live(request)
        if asks:
            return await changes(request, "", active, {})
        past = await finished(request, "", active, after)
    except TouchstoneError as error:
        if asks:
            return Response(status_code=204)
        problem = error.message
    values = {
        "dataset_id": "",
        "active": [] if after else active,
        "mark": mark(active),
        "finished": past,
        "after": after,
        "problem": problem,
        "slots": await slots(request, active, past),
    }
    return await render(request, "datasets/runs.html", "dataset-runs", values)


async def changes(request: Request, dataset_id: str, active: Sequence[job_pb2.Job], own: dict[str, Any]) -> Response:
    """Live runs as they are now; where one began or ended since the caller's last request, also the finished ones.
    `own` goes to their template. Raises what the results service answers."""
    known = request.query_params.get("known") == mark(active)
    past = None if known else await finished(request, dataset_id, active)
    values = {"dataset_id": dataset_id, "active": active, "mark": mark(active), "finished": past}
    return fragment(request, "datasets/_runs.html", values | own | {"slots": await slots(request, active, past)})


async def _now(request: Request, job: job_pb2.Job) -> job_pb2.Job:
    if is_finished(job):
        return job
    try:
        return await jobs.find(context.of(request).backend, job.job_id, context.identity(request))
    except TouchstoneError:
        return job


async def _estimate(request: Request, job: job_pb2.Job) -> results_service_pb2.EstimateRunResponse | None:
    """None where the pilot has too few answers."""
    ctx = context.of(request)
    asked = job.spec.labels[PILOT_LABEL]
    items = int(asked) if asked.isdecimal() and len(asked) < 10 else 0
    # A limit may be more than there is.
    items = min(items, job.published_items or items)
    call = results_service_pb2.EstimateRunRequest(job_id=job.job_id, items=items)
    try:
        return await ctx.backend.ask(ctx.backend.results.EstimateRun, call, context.identity(request))
    except TouchstoneError:
        return None
