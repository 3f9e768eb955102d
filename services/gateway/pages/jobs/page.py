"""One job's page: live while it runs, its metrics when it is done. The event stream replaces regions of it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services import rpc
from services.errors import InvalidRequestError, NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.context import Context
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.display.charts import Axis
from services.gateway.pages.display.work_words import heading
from services.gateway.pages.forms.scoring_form import ScoringForm
from services.gateway.pages.items.listing import Listing
from services.gateway.pages.items.listing import load as load_items
from services.gateway.pages.jobs import judges, receipt
from services.gateway.pages.layout.shell import go_to, render
from services.gateway.reads import jobs
from services.gateway.reads.jobs import percent, total_seconds
from services.words.enums import MARKS, WEIGHTINGS, reading_name, weighting_name
from services.words.jobs import can_retry, is_finished
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_pb2,
)

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
    "job-sheets": "jobs/_sheets.html",
}
"""Root element's id, and the template that draws it. Always whole states."""


_REPLAY_S = 10.0
_UNFOLDED = 12
"""Most tasks whose categories are open from the start; of more, only categories with a running task are."""
_ENDS = {
    "unparsed": "could not be read",
    "output_truncated": "were cut at the token limit",
    "refused": "were refused",
    "input_truncated": "had their prompt cut",
    "infrastructure_error": "failed",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Items that can run again: their outcome and their number."""

    outcome: str
    words: str
    count: int


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task's progress and what it measured so far."""

    task: str
    title: str
    done: int
    total: int
    running: bool
    result: metric_pb2.TaskResult | None
    category: str = ""
    beside: bool = False

    @property
    def finished(self) -> bool:
        return self.total > 0 and self.done >= self.total


@dataclass(frozen=True, slots=True)
class Heading:
    """Lines under one category, with the mean over them if it is known; no title without categories."""

    title: str
    lines: list[TaskLine]
    average: metric_pb2.Metric | None
    open: bool = True


@dataclass(frozen=True, slots=True)
class SoFar:
    """What a live job's score may become. `why` says why the finished items have none."""

    name: str
    metric: metric_pb2.Metric | None
    unit: str = ""
    why: str = ""


async def job_page(request: Request) -> Response:
    """The whole page. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    result, slot, dataset, (previous, following), judged, replayed = await asyncio.gather(
        _result(request, job),
        _slot(request, job),
        dataset_of(ctx, job, caller),
        jobs.runs_around(ctx.backend, job, caller),
        judges.judged(request, job),
        _replayed(request, job),
    )
    listing = await load_items(request, job, previous, judged=bool(judged.judges))
    refresh = request.query_params.get("refresh", "")
    values = view(job, result, caller, dataset, previous, trouble=await ctx.catalogue.trouble(job)) | {
        "listing": listing if isinstance(listing, Listing) else None,
        "items_problem": listing if isinstance(listing, str) else "",
        "refresh": refresh if refresh in dict(REFRESH) else "",
        "refreshes": REFRESH,
        "slot": slot,
        "following": following,
        "replayed": replayed,
        "judges": judges.section(job, judged) if is_finished(job) else None,
        "scorers": await ctx.catalogue.scorers(),
    }
    return await render(request, "jobs/show.html", "history", values)


def view(
    job: job_pb2.Job,
    result: metric_pb2.JobResult,
    caller: rpc.Identity,
    dataset: dataset_pb2.Dataset | None,
    previous: job_pb2.Job | None = None,
    trouble: str = "",
) -> dict[str, Any]:
    """What the regions draw. `dataset` is the result of `dataset_of`, `previous` the configuration's run before;
    `trouble` says why the endpoint does not answer."""
    deleted = job.spec.HasField("dataset") and dataset is None
    return {
        "job": job,
        "result": result,
        "done": is_finished(job),
        "percent": percent(job),
        "elapsed": job.progress.elapsed_s or total_seconds(job),
        "took": total_seconds(job),
        "lines": (lines := _lines(job, result)),
        "headings": _headings(lines, result),
        "failed_empty": job.state == job_pb2.Job.STATE_FAILED and not _stored(result.outcomes),
        "may_mark": job.state == job_pb2.Job.STATE_COMPLETED and result.sealed and jobs.may_change(job, caller),
        "axis": Axis(0, 100, (0, 50, 100), 36),
        "receipt": receipt.rows(job, result),
        "may_change": jobs.may_change(job, caller),
        "previous": previous,
        "trouble": trouble,
        "suite_title": heading(job),
        "outcomes": result.outcomes,
        "so_far": _so_far(job, result),
        **_scores(result),
        "deleted": deleted,
        "can_retry": can_retry(job) and not deleted,
        "can_judge": jobs.can_judge(job, result.texts_dropped),
        "scoring": _scoring_form(job, result) if job.spec.HasField("dataset") else None,
        "reading_chosen": _reading(job, result),
        "takes_reading": job.spec.HasField("suite") and _takes_reading(job.spec),
        "columns": dataset.metadata_fields if dataset else [],
        "again": _choices(job, result.outcomes),
        "new_id": uuid.uuid4().hex,
        "stored": _stored(result.outcomes),
        "in_report": False,
    }


def _scoring_form(job: job_pb2.Job, result: metric_pb2.JobResult) -> ScoringForm:
    """How a dataset's answers may be scored again, before anything is changed."""
    form = ScoringForm.of(job.spec.dataset.scoring, job.spec.dataset.further)
    form.reading = _reading(job, result)
    return form


def _reading(job: job_pb2.Job, result: metric_pb2.JobResult) -> str:
    """Layers by which the answers may be read again: those that are offered, else the job's."""
    return reading_name(result.offered_reading or job.spec.reading) or ""


def _takes_reading(spec: job_pb2.JobSpec) -> bool:
    """Whether answers are read by layers: not in log-likelihood mode, nor by the filters of an open suite."""
    return spec.mode != suite_pb2.MODE_LOGLIKELIHOOD and ":" not in spec.suite.suite


async def _result(request: Request, job: job_pb2.Job) -> metric_pb2.JobResult:
    """The measured result; empty if the results service is silent, as the job's own figures still apply."""
    ctx = context.of(request)
    try:
        return await jobs.result_of(ctx.backend, job.job_id, context.identity(request))
    except TouchstoneError:
        return metric_pb2.JobResult(job_id=job.job_id)


async def _replayed(request: Request, job: job_pb2.Job) -> Sequence[str]:
    """What a replay found, or why that is not known, in sentences; none for other jobs, and before its end."""
    if not job.spec.replays_job_id or job.state != job_pb2.Job.STATE_COMPLETED:
        return ()
    ctx, call = context.of(request), results_service_pb2.GetReplayRequest(job_id=job.job_id)
    try:
        found = await ctx.backend.ask(
            ctx.backend.results.GetReplay, call, context.identity(request), timeout_s=_REPLAY_S
        )
    except TouchstoneError as error:
        return (error.message,)
    return found.replay.words


async def dataset_of(ctx: Context, job: job_pb2.Job, caller: rpc.Identity) -> dataset_pb2.Dataset | None:
    """A finished run's dataset; None when it was deleted. An empty one for other work, for a live run, and while the
    results service is silent."""
    if not job.spec.HasField("dataset") or not is_finished(job):
        return dataset_pb2.Dataset()
    call = dataset_service_pb2.GetDatasetRequest(dataset_id=job.spec.dataset.dataset_id)
    try:
        return (await ctx.backend.ask(ctx.backend.datasets.GetDataset, call, caller)).dataset
    except NotFoundError:
        return None
    except TouchstoneError:
        return dataset_pb2.Dataset()


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
        running = progress.running if progress and not is_finished(job) else False
        answers = plan.items * max(1, plan.repeats)
        title = plan.title or plan.task
        lines.append(TaskLine(plan.task, title, done, answers, running, found, plan.category, plan.beside))
    return lines


def _scores(result: metric_pb2.JobResult) -> dict[str, object]:
    """The rule of the suite's score, in a word, and the score by the other rule; empty for a single task."""
    whole = {weighting_name(average.weighting): average.metric for average in result.averages if not average.category}
    own = weighting_name(result.weighting)
    other = next((name for name in WEIGHTINGS if own and name != own), None)
    return {"own_weighting": own, "other_weighting": other, "other_score": whole.get(other) if other else None}


def _so_far(job: job_pb2.Job, result: metric_pb2.JobResult) -> SoFar:
    """A suite's accuracy over all items; of rows the scorer's own metric, which becomes the score."""
    if not job.spec.HasField("dataset"):
        return SoFar("Accuracy", result.accuracy_so_far if result.HasField("accuracy_so_far") else None, " %")
    metric = next((spec.metric for plan in job.plan for spec in plan.metrics), "score")
    name = formatting.METRIC_NAMES.get(metric, metric)
    score = result.suite_score if result.HasField("suite_score") else None
    why = "" if score else next((one.undefined_reason for task in result.tasks for one in task.metrics), "")
    return SoFar(name[0].upper() + name[1:], score, why=why)


def _choices(job: job_pb2.Job, outcomes: metric_pb2.OutcomeCounts) -> list[Choice]:
    """The items of a job that can run again; empty when every item was answered."""
    counted = ((name, getattr(outcomes, name)) for name in _ENDS)
    choices = [Choice(name, _ENDS[name], count) for name, count in counted if count]
    unasked = job.progress.items_total - _stored(outcomes)
    if unasked > 0 and not outcomes.infrastructure_error:
        # For instance after a budget was used up. They are asked in any case, like those whose calls failed.
        choices.append(Choice("infrastructure_error", "were not asked yet", unasked))
    return choices


def _headings(lines: list[TaskLine], result: metric_pb2.JobResult) -> list[Heading]:
    own = result.weighting or suite_pb2.WEIGHTING_TASKS
    averages = {a.category: a.metric for a in result.averages if a.category and a.weighting == own}
    gathered: dict[str, list[TaskLine]] = {}
    for line in lines:
        gathered.setdefault(line.category, []).append(line)
    few = len(lines) <= _UNFOLDED
    return [
        Heading(title, under, averages.get(title), few or any(line.running for line in under))
        for title, under in gathered.items()
    ]


def _stored(outcomes: metric_pb2.OutcomeCounts) -> int:
    return (
        outcomes.answered
        + outcomes.unparsed
        + outcomes.output_truncated
        + outcomes.refused
        + outcomes.input_truncated
        + outcomes.infrastructure_error
    )


async def stop(request: Request) -> Response:
    """Cancels the job and shows it. 409 if it was already finished."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    call = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
    await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)
    return go_to(request, f"/jobs/{job_id}")


async def delete(request: Request) -> Response:
    """Deletes the job and shows History. 409 if it is not finished."""
    ctx, caller = context.of(request), context.identity(request)
    call = scheduler_service_pb2.DeleteJobRequest(job_id=jobs.checked_id(request.path_params["job_id"]))
    await ctx.backend.ask(ctx.backend.scheduler.DeleteJob, call, caller)
    return go_to(request, "/jobs")


async def retry(request: Request) -> Response:
    """Runs the missing items as the job's next attempt."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    call = scheduler_service_pb2.RetryJobRequest(job_id=job_id)
    await ctx.backend.ask(ctx.backend.scheduler.RetryJob, call, caller)
    return go_to(request, f"/jobs/{job_id}")


async def mark(request: Request) -> Response:
    """Says whether the run counts, and shows it. 400 without the reason or the run that an answer needs."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    form = await request.form()
    word = str(form.get("mark", ""))
    if word not in MARKS:
        raise InvalidRequestError("Choose valid, invalidated or superseded.", "mark")
    by = str(form.get("superseded_by", "")).strip() if word == "superseded" else ""
    reason = str(form.get("reason", "")).strip()
    if word != "valid" and not reason:
        raise InvalidRequestError("Write the reason, then mark the run.", "reason")
    call = results_service_pb2.MarkRunRequest(
        job_id=job_id,
        mark=MARKS[word],
        reason=reason if word != "valid" else "",
        superseded_by=jobs.checked_id(by) if by else "",
    )
    await ctx.backend.ask(ctx.backend.results.MarkRun, call, caller)
    return go_to(request, f"/jobs/{job_id}")
