"""One job's page: live while it runs, its metrics when it is done. Regions are what the event stream replaces."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services import rpc
from services.errors import TouchstoneError
from services.gateway import context, jobs, palette
from services.gateway.api.results import percent, total_seconds
from services.gateway.charts import Axis
from services.gateway.pages import formatting
from services.gateway.pages.items import Listing
from services.gateway.pages.items import load as load_items
from services.gateway.pages.shell import render
from touchstone.v1 import job_pb2, metric_pb2, scheduler_service_pb2

REFRESH = (("", "Live"), ("1", "1 s"), ("5", "5 s"), ("30", "30 s"), ("60", "60 s"))
REGIONS = {
    "job-head": "jobs/_head.html",
    "job-notice": "jobs/_notice.html",
    "job-progress": "jobs/_progress.html",
    "job-strip": "jobs/_strip.html",
    "job-tabs": "jobs/_tabs.html",
    "job-tasks": "jobs/_tasks.html",
    "job-receipt": "jobs/_receipt.html",
    "job-actions": "jobs/_actions.html",
}
"""Root element's id, and the template that draws it. Always whole states."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task's progress and what it measured so far."""

    task: str
    title: str
    done: int
    total: int
    running: bool
    result: metric_pb2.TaskResult | None

    @property
    def finished(self) -> bool:
        return self.total > 0 and self.done >= self.total


async def job_page(request: Request) -> Response:
    """The whole page. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    result, listing, slot = await asyncio.gather(
        _result(request, job), load_items(request, job.job_id), _slot(request, job)
    )
    refresh = request.query_params.get("refresh", "")
    values = view(job, result, caller) | {
        "listing": listing if isinstance(listing, Listing) else None,
        "items_problem": listing if isinstance(listing, str) else "",
        "refresh": refresh if refresh in dict(REFRESH) else "",
        "refreshes": REFRESH,
        "slot": slot,
    }
    return await render(request, "jobs/show.html", "history", values)


def view(job: job_pb2.Job, result: metric_pb2.JobResult, caller: rpc.Identity, stale: str = "") -> dict[str, Any]:
    """What the regions draw. `stale` is the time of the figures while the scheduler does not answer."""
    return {
        "job": job,
        "result": result,
        "done": jobs.is_finished(job),
        "percent": percent(job),
        "elapsed": job.progress.elapsed_s or total_seconds(job),
        "took": total_seconds(job),
        "lines": _lines(job, result),
        "axis": Axis(0, 100, (0, 50, 100), 44, 4),
        "receipt": _receipt(job),
        "may_change": jobs.may_change(job, caller),
        "stale": stale,
        "suite_title": jobs.suite_of(job).upper() if jobs.suite_of(job) in _ACRONYMS else jobs.suite_of(job).title(),
        "outcomes": result.outcomes,
        "stored": _stored(result.outcomes),
    }


_ACRONYMS = ("glue", "mmlu")


async def _result(request: Request, job: job_pb2.Job) -> metric_pb2.JobResult:
    """What is measured; an empty result where the results service is silent, as the job's own figures still hold."""
    ctx = context.of(request)
    try:
        return await jobs.result_of(ctx.backend, job.job_id, context.identity(request))
    except TouchstoneError:
        return metric_pb2.JobResult(job_id=job.job_id)


async def _slot(request: Request, job: job_pb2.Job) -> int | None:
    if job.baseline:
        return None
    key = (job.spec.endpoint, job.spec.model)
    try:
        keys = await context.of(request).catalogue.model_keys()
    except TouchstoneError:
        keys = []
    return palette.assign(keys, [key])[key]


def _lines(job: job_pb2.Job, result: metric_pb2.JobResult) -> list[TaskLine]:
    live = {task.task: task for task in job.progress.tasks}
    measured = {task.task: task for task in result.tasks}
    lines = []
    for plan in job.plan:
        progress, found = live.get(plan.task), measured.get(plan.task)
        done = progress.items_done if progress else (found.items if found else 0)
        running = progress.running if progress and not jobs.is_finished(job) else False
        lines.append(TaskLine(plan.task, plan.title or plan.task, done, plan.items, running, found))
    return lines


def _stored(outcomes: metric_pb2.OutcomeCounts) -> int:
    return (
        outcomes.answered
        + outcomes.unparsed
        + outcomes.output_truncated
        + outcomes.refused
        + outcomes.input_truncated
        + outcomes.infrastructure_error
    )


def _receipt(job: job_pb2.Job) -> list[tuple[str, str, str]]:
    """(name, what, its hash or version) of all that the score rests on."""
    spec, receipt, digest = job.spec, job.receipt, job.receipt.model_digest[:12]
    sources = {(plan.data.dataset, plan.data.revision) for plan in job.plan}
    data = ", ".join(sorted({dataset for dataset, _ in sources}))
    revisions = {revision for _, revision in sources}
    versions = {plan.version for plan in job.plan}
    scorers = {plan.scorer_version for plan in job.plan}
    shots = spec.suite.shots if spec.HasField("suite") else 0
    rows = [
        ("Model", spec.model, ""),
        ("Digest", "" if digest or not job.plan else "not told by the provider", digest),
        ("Endpoint", ", ".join(filter(None, (spec.endpoint, receipt.server))), ""),
        ("Data", data, next(iter(revisions))[:8] if len(revisions) == 1 else ""),
        ("Item set", formatting.plural(job.progress.items_total, "item") if job.plan else "", job.item_set[:6]),
        ("Prompt", f"v{', v'.join(sorted(versions))}, scorer v{', v'.join(sorted(scorers))}" if versions else "", ""),
        ("Sampling", sampling_words(spec.sampling), ""),
        ("Mode", f"{'log-likelihood' if spec.mode == 2 else 'generate'}, {shots}-shot", ""),
        ("Concurrency", f"{receipt.concurrency} per evaluator" if receipt.concurrency else "", ""),
        ("Software", f"Touchstone {receipt.software}" if receipt.software else "", ""),
        ("Configuration", "", receipt.configuration[:12]),
        ("Project", str(spec.project_id) if spec.project_id else "", ""),
        ("Attempt", str(job.attempt) if job.attempt > 1 else "", ""),
    ]
    return [row for row in rows if row[1] or row[2]]


def sampling_words(sampling: job_pb2.Sampling) -> str:
    """The parameters that were set, under the names that users write."""
    words = []
    if sampling.HasField("temperature"):
        words.append("greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}")
    names = {
        "top_p": "top_p",
        "top_k": "top_k",
        "max_tokens": "num_predict",
        "context_length": "num_ctx",
        "seed": "seed",
        "repeat_penalty": "repeat_penalty",
    }
    words += [f"{name} {getattr(sampling, field):g}" for field, name in names.items() if sampling.HasField(field)]
    words += [f"{name} set" for name in sampling.extra]
    return ", ".join(words) or "provider's defaults"


async def stop(request: Request) -> Response:
    """Cancels the job and shows it. 409 when it was finished already."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    call = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
    await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)
    return go_to(request, f"/jobs/{job_id}")


async def retry(request: Request) -> Response:
    """Runs what is missing as the job's next attempt."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    call = scheduler_service_pb2.RetryJobRequest(job_id=job_id)
    await ctx.backend.ask(ctx.backend.scheduler.RetryJob, call, caller)
    return go_to(request, f"/jobs/{job_id}")


def go_to(request: Request, address: str) -> Response:
    """Sends the browser on: by header for htmx, by redirect without it."""
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)
