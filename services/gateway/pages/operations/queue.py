"""The queue: what runs, what waits and about when it starts, the endpoints' slots, and the evaluators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from services import rpc
from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.reads import jobs
from services.words import refusals
from services.words.endpoints import evaluator_state
from services.words.enums import PRIORITIES
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, queue_pb2, scheduler_service_pb2


@dataclass(frozen=True, slots=True)
class Waiting:
    """A waiting job. Of one that the caller may not see, only its place is known: `job.job_id` is empty.

    `starts` is a time in words. `higher` and `lower` are the neighbouring priorities, empty at the ends and for callers
    who are not admins.
    """

    job: job_pb2.Job
    priority: str
    starts: str
    higher: str
    lower: str
    may_change: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """A user's part of the queue. `next` is the place of the user's first waiting job; 0 without one."""

    user: str
    holds: int
    waits: int
    next: int


@dataclass(frozen=True, slots=True)
class Place:
    """An endpoint with the jobs that run or wait for it, as far as the caller may see them."""

    endpoint: endpoint_pb2.Endpoint
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Worker:
    """An evaluator. `state` is a word, `models` are those in memory."""

    evaluator: evaluator_pb2.Evaluator
    state: str
    models: tuple[str, ...]


def waiting_rows(pending: Iterable[job_pb2.Job], caller: rpc.Identity) -> list[Waiting]:
    """In the order in which they start."""
    return [_waiting(job, caller) for job in pending]


def _waiting(job: job_pb2.Job, caller: rpc.Identity) -> Waiting:
    words = list(PRIORITIES)
    priority = PRIORITIES.of(job.spec.priority) or ""
    at = words.index(priority) if priority else 0
    moves = caller.is_admin and bool(priority)
    return Waiting(
        job=job,
        priority=priority,
        starts=starts(job.progress),
        higher=words[at + 1] if moves and at + 1 < len(words) else "",
        lower=words[at - 1] if moves and at > 0 else "",
        may_change=bool(job.job_id) and jobs.may_change(job, caller),
    )


def starts(progress: job_pb2.Progress) -> str:
    """About when a waiting job starts: "about 14:53"; empty while that is not known."""
    if not progress.HasField("starts_in_s"):
        return ""
    return "now" if progress.starts_in_s < 1 else f"about {formatting.after(progress.starts_in_s)}"


def turns(queue: queue_pb2.Queue) -> list[Turn]:
    """Users with jobs, in the order of their next turns; then those who only have running ones. Jobs that the caller
    may not see name no user."""
    holds = Counter(job.owner for job in queue.running if job.owner)
    waits = Counter(job.owner for job in queue.pending if job.owner)
    first: dict[str, int] = {}
    for place, job in enumerate(queue.pending, 1):
        if job.owner:
            first.setdefault(job.owner, place)
    users = [*first, *sorted(holds.keys() - first.keys())]
    return [Turn(user, holds[user], waits[user], first.get(user, 0)) for user in users]


def places(endpoints: Iterable[endpoint_pb2.Endpoint], queue: queue_pb2.Queue) -> list[Place]:
    """Every endpoint with its jobs."""
    running = Counter(job.spec.endpoint for job in queue.running)
    waiting = Counter(job.spec.endpoint for job in queue.pending)
    return [Place(one, running[one.endpoint], waiting[one.endpoint]) for one in endpoints]


def workers(evaluators: Iterable[evaluator_pb2.Evaluator]) -> list[Worker]:
    """Live ones first."""
    ordered = sorted(evaluators, key=lambda one: (not one.live, one.evaluator))
    return [
        Worker(
            one,
            evaluator_state(one),
            tuple(dict.fromkeys(e.resident_model for e in one.endpoints if e.resident_model)),
        )
        for one in ordered
    ]


async def queue_page(request: Request) -> Response:
    """The page, or its body for htmx."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.GetQueueRequest()
    answer, endpoints, evaluators = await asyncio.gather(
        ctx.backend.ask(ctx.backend.scheduler.GetQueue, call, caller),
        ctx.catalogue.endpoints(),
        ctx.catalogue.evaluators(),
    )
    queue = answer.queue
    values = {
        "queue": queue,
        "waiting": waiting_rows(queue.pending, caller),
        "turns": turns(queue),
        "places": places(endpoints, queue),
        "workers": workers(evaluators),
        "caller": caller,
        "slots": palette.assign(await _keys(request), _shown(queue.running, queue.pending, queue.scoring)),
    }
    if is_fragment(request):
        return fragment(request, "queue/_queue.html", values)
    return await render(request, "queue/index.html", "queue", values)


def _shown(*lists: Sequence[job_pb2.Job]) -> list[tuple[str, str]]:
    return [(job.spec.endpoint, job.spec.model) for listed in lists for job in listed]


async def _keys(request: Request) -> list[tuple[str, str]]:
    try:
        return await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        return []


async def set_priority(request: Request) -> Response:
    """Gives a waiting job another priority and shows the queue. 403 for callers who are not admins, 409 for a job that
    has started."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    word = str((await request.form()).get("priority", ""))
    if word not in PRIORITIES:
        raise InvalidRequestError(refusals.not_valid(word, "priority", PRIORITIES), "priority")
    call = scheduler_service_pb2.SetJobPriorityRequest(job_id=job_id, priority=PRIORITIES[word])
    await ctx.backend.ask(ctx.backend.scheduler.SetJobPriority, call, caller)
    return go_to(request, "/queue")


async def cancel(request: Request) -> Response:
    """Cancels a job and shows the queue. 409 for a job that was already finished."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.CancelJobRequest(job_id=jobs.checked_id(request.path_params["job_id"]))
    await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)
    return go_to(request, "/queue")


async def drain(request: Request) -> Response:
    """Drains an evaluator and shows the queue. 403 for callers who are not admins."""
    return await _set_drain(request, drain=True)


async def resume(request: Request) -> Response:
    """Lets a drained evaluator take work again and shows the queue. 403 for callers who are not admins."""
    return await _set_drain(request, drain=False)


async def _set_drain(request: Request, *, drain: bool) -> Response:
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.SetEvaluatorDrainRequest(evaluator=request.path_params["evaluator"], drain=drain)
    await ctx.backend.ask(ctx.backend.scheduler.SetEvaluatorDrain, call, caller)
    ctx.catalogue.forget_evaluators()
    return go_to(request, "/queue")
