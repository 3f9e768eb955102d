"""Every job, newest first: running, waiting and finished ones; what calls of models took; and messages set aside, for
admins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from services import rpc
from services.errors import ConflictError, InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.context import Context
from services.gateway.fields.query import DAYS, PROJECT, values_of
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.display.work_words import scorer_name
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.reads import jobs
from services.words.enums import reading_name
from services.words.jobs import STATUSES, can_retry, is_finished, is_rescore, states_of
from touchstone.v1 import call_pb2, job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2


@dataclass(frozen=True, slots=True)
class Figure:
    """`text` and `interval` are × 100. If `bounded`, the text is the range that missing answers leave open;
    without an estimate `value`, from 0 to 1, is None."""

    text: str = formatting.MISSING
    interval: str = ""
    bounded: bool = False
    value: float | None = None


def figure(metric: metric_pb2.Metric | None, *, ranks: bool) -> Figure:
    """What is known about an average. A run that does not rank shows no estimate that missing answers could still
    change."""
    if metric is None:
        return Figure()
    if not (ranks and metric.HasField("mean")) and (open_to := formatting.bounds(metric)):
        return Figure(open_to, bounded=True)
    if not metric.HasField("mean") or not (ranks or metric.HasField("bound_low")):
        return Figure()
    return Figure(formatting.hundredths(metric.mean), formatting.interval(metric), value=metric.mean)


@dataclass(frozen=True, slots=True)
class JobRow:
    """`why` says why a completed run does not rank; empty while it ranks, or may still. `caution` says which answers
    count as wrong because they were not read. `unscored`: none of its rows has a reference, so it cannot rank. `name`
    and `alias` are its configuration's, empty without.
    """

    job: job_pb2.Job
    score: Figure
    accuracy: Figure
    f1: Figure
    asked: tuple[str, ...]
    why: str
    caution: str
    unscored: bool
    name: str = ""
    alias: str = ""


def job_rows(found: Iterable[job_pb2.Job], scores: Iterable[results_service_pb2.JobScores]) -> list[JobRow]:
    """One for each job, in the same order. A job without scores has dashes."""
    by_job = {one.job_id: one for one in scores}
    return [_row(job, by_job.get(job.job_id, results_service_pb2.JobScores())) for job in found]


def asked(spec: job_pb2.JobSpec) -> tuple[str, ...]:
    """What distinguishes runs of a model over the same data: "generate", "5-shot", "choice", "scored again"."""
    shots, repeats = spec.suite.shots, spec.suite.repeats
    words = (
        formatting.mode(spec.mode),
        f"{shots}-shot" if shots else "",
        f"{repeats} answers" if repeats > 1 else "",
        scorer_name(spec.dataset.scoring.scorer) if spec.HasField("dataset") else "",
        *(f"also {scorer_name(one.scorer)}" for one in spec.dataset.further),
        f"{reading_name(spec.reading)} reading" if spec.reading else "",
        "scored again" if is_rescore(spec) else "",
    )
    return tuple(filter(None, words))


def _row(job: job_pb2.Job, scores: results_service_pb2.JobScores) -> JobRow:
    averages = {average.metric: average for average in scores.averages}
    ranks = not (scores.not_ranked_reason or job.incomplete)
    why = scores.not_ranked_reason if job.state == job_pb2.Job.STATE_COMPLETED else ""
    score = averages.get("score")
    return JobRow(
        job=job,
        score=figure(score, ranks=ranks),
        # For rows the score is the mean of the scorer's own metric: an accuracy would only repeat it.
        accuracy=Figure() if job.spec.HasField("dataset") else figure(averages.get("accuracy"), ranks=ranks),
        f1=figure(averages.get("f1"), ranks=ranks),
        asked=asked(job.spec),
        why=why,
        caution="" if why else scores.caution,
        # Not "4 items have no answer": the only reason for no rank is that the score itself is undefined.
        unscored=bool(why) and score is not None and score.undefined_reason == why,
        name=scores.name,
        alias=scores.alias,
    )


PAGE_SIZE = 50

_DAYS = (1, 7, 30, 90, 365)
_NUMBERS = (replace(DAYS, default=0), replace(PROJECT, name="project"))
_MOST_SELECTED = 100
_SHOWN = 20
_USAGE_DAYS = 30
_PATIENCE_S = 2.0
"""The page comes without a list that takes longer."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters in the address; empty and 0 mean any. `model` is an exact id, `query` a part of it in any case."""

    status: str = ""
    suite: str = ""
    endpoint: str = ""
    model: str = ""
    query: str = ""
    days: int = 0
    project: int = 0

    @classmethod
    def of(cls, query: QueryParams) -> Filters:
        """Raises FieldErrors for days or a project outside of their range."""
        status = query.get("status", "")
        numbers = values_of({name: query.get(name, "").strip() for name in ("days", "project")}, _NUMBERS)
        return cls(
            status=status if status in STATUSES else "",
            suite=query.get("suite", ""),
            endpoint=query.get("endpoint", ""),
            model=query.get("model", ""),
            query=query.get("query", "").strip()[:200],
            **numbers,
        )

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def encoded(self, **changes: object) -> str:
        """The filters as a query, with `changes`."""
        return urlencode({name: value for name, value in (asdict(self) | changes).items() if value})

    def address(self, **changes: object) -> str:
        """The page with these filters, with `changes` to its query."""
        return "/jobs?" + self.encoded(**changes)

    def export(self, form: str) -> str:
        """The same jobs as a file."""
        named = asdict(self)
        asked = {"kind": "jobs", "format": form, "model_name": named.pop("model"), "project_id": named.pop("project")}
        return "/api/v1/benchmarking/export?" + urlencode({n: value for n, value in (asked | named).items() if value})

    def request(self, after: str) -> tuple[results_service_pb2.ResultsServiceListJobsRequest, int]:
        """A page of the jobs, and when its days begin in milliseconds since 1970, 0 without days. Raises
        InvalidRequestError for an `after` of other filters."""
        start_ms, token = jobs.days_start(self.days, after) if self.days else (0, after)
        call = results_service_pb2.ResultsServiceListJobsRequest(
            page_size=PAGE_SIZE,
            page_token=token,
            model=self.model,
            suite=self.suite,
            endpoint=self.endpoint,
            states=states_of(self.status) if self.status else [],
            model_query=self.query,
            project_id=self.project,
            with_scores=True,
        )
        if self.days:
            call.created_after.FromMilliseconds(start_ms)
        return call, start_ms


async def history(request: Request) -> Response:
    """A filtered page of jobs. Live ones show the scheduler's figures, which are newer than the stored ones."""
    ctx, caller = context.of(request), context.identity(request)
    chosen, after = Filters.of(request.query_params), request.query_params.get("after", "")
    call, start_ms = chosen.request(after)
    await jobs.settle(ctx.backend, caller)
    answer = await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)
    found, fresh = await jobs.current(ctx.backend, call, answer.jobs, caller, 0 if after else PAGE_SIZE)
    try:
        suites, keys = [s.suite for s in await ctx.catalogue.suites()], await ctx.catalogue.model_keys()
        endpoints = [one.endpoint for one in await ctx.catalogue.endpoints()]
    except TouchstoneError:
        suites, keys, endpoints = [], [], []
    names = {job.spec.dataset.dataset_id: job.spec.dataset.name for job in found if job.spec.HasField("dataset")}
    offered = [(name, name) for name in suites]
    if chosen.suite not in ("", *suites):
        offered.append((chosen.suite, names.get(chosen.suite) or chosen.suite))
    more = answer.next_page_token
    if chosen.days:
        more = jobs.days_token(chosen.days, start_ms, more)
    values = {
        "rows": job_rows(found, answer.scores),
        "can": {job.job_id: actions(job, caller) for job in found},
        "total": answer.total_size + fresh,
        "answer": answer,
        "chosen": chosen,
        "statuses": STATUSES,
        "suites": sorted(offered, key=lambda one: one[1]),
        "endpoints": sorted({*endpoints, *filter(None, [chosen.endpoint])}),
        "days": sorted({*_DAYS, *filter(None, [chosen.days])}),
        "more": chosen.address(after=more) if more else "",
        "here": chosen.address(),
        "slots": palette.assign(keys, ((job.spec.endpoint, job.spec.model) for job in found)),
        "refresh": not after and any(not is_finished(job) for job in found),
    }
    if is_fragment(request):
        return fragment(request, "jobs/_rows.html" if after else "jobs/_history.html", values)
    aside, usage = await asyncio.gather(messages_set_aside(request), _usage(request))
    return await render(
        request, "jobs/index.html", "history", values | {"set_aside": aside, "usage": usage, "usage_days": _USAGE_DAYS}
    )


def actions(job: job_pb2.Job, caller: rpc.Identity) -> str:
    """What the caller may do with the job when it is selected: words of "compare retry cancel delete"."""
    mine = caller.is_admin or caller.user == job.owner
    able = {
        "compare": job.state == job_pb2.Job.STATE_COMPLETED,
        "retry": mine and can_retry(job),
        "cancel": mine and not is_finished(job),
        "delete": mine and is_finished(job),
    }
    return " ".join(word for word, may in able.items() if may)


async def retry_selected(request: Request) -> Response:
    """Runs what is missing of the selected jobs."""

    async def send(ctx: Context, job_id: str, caller: rpc.Identity) -> None:
        call = scheduler_service_pb2.RetryJobRequest(job_id=job_id)
        await ctx.backend.ask(ctx.backend.scheduler.RetryJob, call, caller)

    return await _each_selected(request, "retry", "retried", send)


async def cancel_selected(request: Request) -> Response:
    """Cancels the selected jobs that have not finished."""

    async def send(ctx: Context, job_id: str, caller: rpc.Identity) -> None:
        call = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
        await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)

    return await _each_selected(request, "cancel", "cancelled", send)


async def delete_selected(request: Request) -> Response:
    """Deletes the selected jobs that have finished."""

    async def send(ctx: Context, job_id: str, caller: rpc.Identity) -> None:
        call = scheduler_service_pb2.DeleteJobRequest(job_id=job_id)
        await ctx.backend.ask(ctx.backend.scheduler.DeleteJob, call, caller)

    return await _each_selected(request, "delete", "deleted", send)


_UNFIT = {
    "retry": "has all its answers, has not finished,",
    "cancel": "has finished",
    "delete": "has not finished",
}
"""Why an action does not fit a job, unless it belongs to another user."""


async def _each_selected(
    request: Request, action: str, done: str, send: Callable[[Context, str, rpc.Identity], Awaitable[None]]
) -> Response:
    """Does it to each selected job that it fits, and shows the list. Raises ConflictError where a job refuses, which
    says how many did not."""
    ctx, caller = context.of(request), context.identity(request)
    ids = list(dict.fromkeys(one for one in (await request.form()).getlist("jobs") if isinstance(one, str)))
    if not 1 <= len(ids) <= _MOST_SELECTED:
        raise InvalidRequestError(f"Select between 1 and {_MOST_SELECTED} jobs.", "jobs")
    found = await asyncio.gather(*(jobs.find(ctx.backend, job_id, caller) for job_id in ids))
    fit = [job.job_id for job in found if action in actions(job, caller).split()]
    if not fit:
        raise ConflictError(f"No selected job can be {done}: each {_UNFIT[action]} or belongs to another user.")
    outcomes = await asyncio.gather(*(send(ctx, job_id, caller) for job_id in fit), return_exceptions=True)
    problems = [one for one in outcomes if isinstance(one, BaseException)]
    for problem in problems:
        if not isinstance(problem, TouchstoneError):
            raise problem
    if problems:
        reasons = " ".join(dict.fromkeys(str(problem) for problem in problems))
        raise ConflictError(f"{len(fit) - len(problems)} of {formatting.plural(len(fit), 'job')} {done}. {reasons}")
    return go_to(request, Filters.of(request.query_params).address())


async def _usage(request: Request) -> Sequence[call_pb2.CallUsage]:
    """What calls of models took lately; empty while the results service is silent."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.GetCallUsageRequest()
    call.started_after.FromDatetime(datetime.now(UTC) - timedelta(days=_USAGE_DAYS))
    try:
        answer = await ctx.backend.ask(ctx.backend.results.GetCallUsage, call, caller, timeout_s=_PATIENCE_S)
    except TouchstoneError:
        return ()
    return answer.usage


async def messages_set_aside(request: Request) -> scheduler_service_pb2.ListSetAsideMessagesResponse | None:
    """The oldest of them. None for callers who are not admins, and while the scheduler or NATS is silent."""
    ctx, caller = context.of(request), context.identity(request)
    if not caller.is_admin:
        return None
    call = scheduler_service_pb2.ListSetAsideMessagesRequest(page_size=_SHOWN)
    try:
        return await ctx.backend.ask(ctx.backend.scheduler.ListSetAsideMessages, call, caller, timeout_s=_PATIENCE_S)
    except TouchstoneError:
        return None
