"""The section of a judged or rated job's page: what each judge found, how people agree, and the rubrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.gateway import context
from services.gateway.pages.display import formatting, scales
from services.gateway.pages.items.opinions import ask
from services.gateway.pages.jobs import agreement, preferences
from services.gateway.pages.layout.shell import fragment, is_fragment
from services.gateway.reads import jobs
from services.gateway.reads.values import is_bounded
from services.words import rubrics
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import JudgeRun, ListJudgesResponse
from touchstone.v1.rubric_pb2 import Rubric


@dataclass(frozen=True, slots=True)
class Figure:
    """A criterion's mean on its own scale, or the composite × 100. `title` says both ways of writing it."""

    name: str
    mean: str
    interval: str
    scale: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A judge: one that the job asked for has no job (`job` is None) before it starts. `failed` are judgements that
    could not be read, `errors` calls that failed; `agreement` is that with people, where some rated. `preferences` are
    those of a judge that compares two jobs, which has no figures."""

    endpoint: str
    model: str
    rubric: str
    digest: str
    job: job_pb2.Job | None
    figures: Sequence[Figure] = ()
    asked: int = 0
    judged: int = 0
    failed: int = 0
    errors: int = 0
    agreement: agreement.Agreement | None = None
    preferences: preferences.Preferences | None = None
    rater: str = ""
    """The user who sends the scores of a judge outside Touchstone; empty for others."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A rubric by which some judge judges. `shares` are the weights of its criteria as shares, in words."""

    rubric: Rubric
    digest: str
    shares: list[str]
    scales: list[str]


@dataclass(frozen=True, slots=True)
class Section:
    """The judges of one job, and the people who rated by a rubric of no judge. `live` while a judge may still change;
    `may_rate` where people may rate, too."""

    lines: list[Line]
    people: list[agreement.People]
    sheets: list[Sheet]
    live: bool
    may_rate: bool


async def judged(request: Request, job: job_pb2.Job) -> ListJudgesResponse:
    """The jobs that judge a finished job's answers, newest first, and how people agree; nothing while the results
    service is silent."""
    if not is_finished(job) or job.spec.HasField("judging"):
        return ListJudgesResponse()
    return await ask(request, results_service_pb2.ListJudgesRequest(job_id=job.job_id))


def section(job: job_pb2.Job, found: ListJudgesResponse) -> Section | None:
    """What the page shows of a job's judges and raters. None for a job without."""
    runs = found.judges
    lines = [*_waiting(job, runs), *map(_line, runs), *map(_outside, found.outside)]
    # A judge's own table has people's alpha.
    shown = {line.digest for line in lines if line.agreement and line.agreement.lines}
    people = [one for one in map(agreement.of_people, found.people) if one.answers and one.digest not in shown]
    if not lines and not people:
        return None
    judged_by = [*(run.rubric for run in runs), *(one.rubric for one in found.outside)]
    known = {rubrics.digest(one): one for one in judged_by} | {one.digest: one.rubric for one in people}
    for judge in job.spec.judges:
        rubric = rubrics.parse(judge.rubric)
        known.setdefault(rubrics.digest(rubric), rubric)
    live = any(not line.rater and (line.job is None or not is_finished(line.job)) for line in lines)
    sheets = [_sheet(rubric, digest) for digest, rubric in known.items()]
    return Section(lines, people, sheets, live, jobs.can_judge(job, ""))


def _waiting(job: job_pb2.Job, runs: Sequence[JudgeRun]) -> list[Line]:
    """Judges that the job asked for and that have no job yet."""
    started = [(run.job.spec.endpoint, run.job.spec.model, rubrics.written(run.rubric)) for run in runs]
    found = []
    for judge in job.spec.judges:
        key = (judge.endpoint, judge.model, judge.rubric)
        if key in started:
            started.remove(key)
        else:
            rubric = rubrics.parse(judge.rubric)
            found.append(Line(judge.endpoint, judge.model, rubric.version, rubrics.digest(rubric), None))
    return found


def _line(run: JudgeRun) -> Line:
    outcomes = run.result.outcomes
    preferred = preferences.of_run(run)
    return Line(
        endpoint=run.job.spec.endpoint,
        model=run.job.spec.model,
        rubric=run.rubric.version,
        digest=rubrics.digest(run.rubric),
        job=run.job,
        figures=[_figure(run.rubric, metric) for metric in run.result.metrics] if preferred is None else [],
        asked=run.result.items_planned or run.job.progress.items_total,
        judged=outcomes.answered,
        failed=run.result.items - outcomes.answered - outcomes.infrastructure_error,
        errors=outcomes.infrastructure_error,
        agreement=agreement.of_run(run),
        preferences=preferred,
    )


def _outside(found: results_service_pb2.OutsideJudge) -> Line:
    return Line(
        endpoint="",
        model=found.judge,
        rubric=found.rubric.version,
        digest=rubrics.digest(found.rubric),
        job=None,
        figures=[_mean(found.rubric, one) for one in found.means],
        asked=found.answers,
        judged=found.judged,
        agreement=agreement.of_run(found),
        rater=found.rater,
    )


def _mean(rubric: Rubric, found: results_service_pb2.CriterionScore) -> Figure:
    scale, score = scales.scale_of(rubric, found.criterion), found.score
    mean, interval = scales.mean(scale, score.value), scales.span(scale, score.low, score.high)
    return Figure(found.criterion, mean, interval, scales.unit(scale), f"over {formatting.plural(score.n, 'answer')}")


def _figure(rubric: Rubric, metric: metric_pb2.Metric) -> Figure:
    """Bounds stand in the place of a mean that is not estimated, as on the judge's own page."""
    scale = scales.scale_of(rubric, metric.metric)
    if is_bounded(metric):
        mean, interval = scales.span(scale, metric.bound_low, metric.bound_high), ""
    else:
        mean = scales.mean(scale, metric.mean) if metric.HasField("mean") else formatting.MISSING
        known = metric.HasField("mean") and metric.HasField("ci95_low")
        interval = scales.span(scale, metric.ci95_low, metric.ci95_high) if known else ""
    title = "what was scored counts, as a share of the most"
    if scale is not None:
        hundredths = " ".join(filter(None, (formatting.mean(metric), formatting.interval(metric))))
        title = f"{hundredths} of 100 on the judge's own page"
    return Figure(metric.metric, mean, interval, scales.unit(scale), title)


def _sheet(rubric: Rubric, digest: str) -> Sheet:
    return Sheet(
        rubric, digest[:8], scales.weights(rubric), [rubrics.allowed(criterion) for criterion in rubric.criteria]
    )


async def judges(request: Request) -> Response:
    """The section as it is now, for a page that shows it; a whole page for a visitor."""
    ctx = context.of(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))
    if not is_fragment(request):
        return RedirectResponse(f"/jobs/{job.job_id}#job-judges", 303)
    values = {"job": job, "judges": section(job, await judged(request, job))}
    return fragment(request, "jobs/_judges.html", values)
