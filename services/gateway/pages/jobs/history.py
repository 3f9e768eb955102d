"""Every job, newest first: running, waiting and finished ones; what calls of models took; and messages set aside, for
admins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import TouchstoneError
from services.gateway import context
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.display.work_words import scorer_name
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import jobs
from services.words.enums import reading_name
from services.words.jobs import STATUSES, is_finished, is_rescore, states_of
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
    count as wrong because they were not read. `unscored`: none of its rows has a reference, so it cannot rank.
    """

    job: job_pb2.Job
    score: Figure
    accuracy: Figure
    f1: Figure
    asked: tuple[str, ...]
    why: str
    caution: str
    unscored: bool


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
    )


PAGE_SIZE = 50

_SHOWN = 20
_USAGE_DAYS = 30
_PATIENCE_S = 2.0
"""The page comes without a list that takes longer."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters in the address; empty means any. `model` is an exact id, `query` a part of it in any case."""

    status: str
    suite: str
    model: str
    query: str

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def address(self, **changes: str) -> str:
        """The page with these filters, with `changes` to its query."""
        return "/jobs?" + urlencode({name: value for name, value in (asdict(self) | changes).items() if value})

    def export(self, form: str) -> str:
        """The same jobs as a file."""
        asked = {"kind": "jobs", "format": form, "status": self.status, "suite": self.suite}
        asked |= {"model_name": self.model, "query": self.query}
        return "/api/v1/benchmarking/export?" + urlencode({name: value for name, value in asked.items() if value})


async def history(request: Request) -> Response:
    """A filtered page of jobs. Live ones show the scheduler's figures, which are newer than the stored ones."""
    ctx, caller = context.of(request), context.identity(request)
    query = request.query_params
    status = query.get("status", "") if query.get("status", "") in STATUSES else ""
    after = query.get("after", "")
    chosen = Filters(status, query.get("suite", ""), query.get("model", ""), query.get("query", "").strip()[:200])
    call = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=PAGE_SIZE,
        page_token=after,
        model=chosen.model,
        suite=chosen.suite,
        states=states_of(status) if status else [],
        model_query=chosen.query,
        with_scores=True,
    )
    answer = await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)
    found, fresh = await jobs.current(ctx.backend, call, answer.jobs, caller, 0 if after else PAGE_SIZE)
    try:
        suites, keys = [s.suite for s in await ctx.catalogue.suites()], await ctx.catalogue.model_keys()
    except TouchstoneError:
        suites, keys = [], []
    names = {job.spec.dataset.dataset_id: job.spec.dataset.name for job in found if job.spec.HasField("dataset")}
    offered = [(name, name) for name in suites]
    if chosen.suite not in ("", *suites):
        offered.append((chosen.suite, names.get(chosen.suite) or chosen.suite))
    values = {
        "rows": job_rows(found, answer.scores),
        "total": answer.total_size + fresh,
        "chosen": chosen,
        "statuses": STATUSES,
        "suites": sorted(offered, key=lambda one: one[1]),
        "more": chosen.address(after=answer.next_page_token) if answer.next_page_token else "",
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


async def jump(request: Request) -> Response:
    """The search box: a job's or a dataset's id, a suite or a model."""
    ctx = context.of(request)
    text = request.query_params.get("q", "").strip()
    if not text:
        return RedirectResponse("/jobs", 303)
    if jobs.is_dataset(text):
        return RedirectResponse(f"/datasets/{text}", 303)
    found = await _job_named(request, text.lower())
    if found:
        return RedirectResponse(f"/jobs/{found}", 303)
    try:
        if text.lower() in {suite.suite for suite in await ctx.catalogue.suites()}:
            return RedirectResponse("/leaderboard?" + urlencode({"suite": text.lower()}), 303)
    except TouchstoneError:
        pass
    return RedirectResponse("/jobs?" + urlencode({"query": text}), 303)


async def _job_named(request: Request, text: str) -> str:
    """The id of the job that begins with this text (at least six characters); empty for none."""
    ctx, caller = context.of(request), context.identity(request)
    if jobs.is_benchmark(text):
        return jobs.checked_id(text)
    if len(text) < 6 or not set(text) <= set("0123456789abcdef-"):
        return ""
    if len(text) == 36:
        return text
    call = results_service_pb2.ResultsServiceListJobsRequest(page_size=100)
    answer = await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)
    return next((job.job_id for job in answer.jobs if job.job_id.startswith(text)), "")


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
