"""The section of a judged job's page: what each judge found, and the rubrics that they judge by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.gateway import context
from services.gateway.pages.display import formatting
from services.gateway.pages.items.opinions import ask
from services.gateway.pages.layout.shell import fragment, is_fragment
from services.gateway.reads import jobs
from services.gateway.reads.values import is_bounded
from services.words import rubrics
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import JudgeRun
from touchstone.v1.rubric_pb2 import Rubric, RubricCriterion

_FINE = 4
"""A scale with fewer steps has means with two decimals."""


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
    could not be read, `errors` calls that failed."""

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


@dataclass(frozen=True, slots=True)
class Sheet:
    """A rubric by which some judge judges. `shares` are the weights of its criteria as shares, in words."""

    rubric: Rubric
    digest: str
    shares: list[str]
    scales: list[str]


@dataclass(frozen=True, slots=True)
class Section:
    """The judges of one job. `live` while one of them may still change."""

    lines: list[Line]
    sheets: list[Sheet]
    live: bool


async def runs_of(request: Request, job: job_pb2.Job) -> list[JudgeRun]:
    """The jobs that judge a finished job's answers, newest first; none while the results service is silent."""
    if not is_finished(job) or job.spec.HasField("judging"):
        return []
    return await ask(request, results_service_pb2.ListJudgesRequest(job_id=job.job_id))


def section(job: job_pb2.Job, runs: Sequence[JudgeRun]) -> Section | None:
    """What the page shows of a job's judges. None for a job without."""
    lines = [*_waiting(job, runs), *map(_line, runs)]
    if not lines:
        return None
    known = {rubrics.digest(run.rubric): run.rubric for run in runs}
    for judge in job.spec.judges:
        rubric = rubrics.parse(judge.rubric)
        known.setdefault(rubrics.digest(rubric), rubric)
    live = any(line.job is None or not is_finished(line.job) for line in lines)
    return Section(lines, [_sheet(rubric, digest) for digest, rubric in known.items()], live)


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
            found.append(Line(judge.endpoint, judge.model, rubric.version, rubrics.digest(rubric)[:8], None))
    return found


def _line(run: JudgeRun) -> Line:
    outcomes = run.result.outcomes
    return Line(
        endpoint=run.job.spec.endpoint,
        model=run.job.spec.model,
        rubric=run.rubric.version,
        digest=rubrics.digest(run.rubric)[:8],
        job=run.job,
        figures=[_figure(run.rubric, metric) for metric in run.result.metrics],
        asked=run.result.items_planned or run.job.progress.items_total,
        judged=outcomes.answered,
        failed=run.result.items - outcomes.answered - outcomes.infrastructure_error,
        errors=outcomes.infrastructure_error,
    )


def _figure(rubric: Rubric, metric: metric_pb2.Metric) -> Figure:
    """Bounds stand in the place of a mean that is not estimated, as on the judge's own page."""
    criterion = next((one for one in rubric.criteria if one.name == metric.metric and not one.choices), None)
    hundredths = " ".join(filter(None, (formatting.mean(metric), formatting.interval(metric))))
    if criterion is None:
        bounds = formatting.bounds(metric)
        mean, interval = bounds or formatting.mean(metric), "" if bounds else formatting.interval(metric)
        return Figure(metric.metric, mean, interval, "of 100", "what was scored counts, as a share of the most")
    if is_bounded(metric):
        mean, interval = _span(criterion, metric.bound_low, metric.bound_high), ""
    else:
        mean = _on_scale(criterion, metric.mean) if metric.HasField("mean") else formatting.MISSING
        known = metric.HasField("mean") and metric.HasField("ci95_low")
        interval = _span(criterion, metric.ci95_low, metric.ci95_high) if known else ""
    title = f"{hundredths} of 100 on the judge's own page"
    return Figure(metric.metric, mean, interval, f"of {criterion.lowest}–{criterion.highest}", title)


def _on_scale(criterion: RubricCriterion, share: float) -> str:
    decimals = 2 if criterion.highest - criterion.lowest < _FINE else 1
    text = f"{rubrics.on_scale(criterion, share):.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


def _span(criterion: RubricCriterion, low: float, high: float) -> str:
    ends = [_on_scale(criterion, low), _on_scale(criterion, high)]
    return (" to " if criterion.lowest < 0 else "–").join(ends)


def _sheet(rubric: Rubric, digest: str) -> Sheet:
    weights = [criterion.weight for criterion in rubric.criteria]
    if not any(weights):
        weights = [1.0] * len(weights)
    shares = [f"{100 * weight / sum(weights):.0f} %" for weight in weights]
    return Sheet(rubric, digest[:8], shares, [rubrics.allowed(criterion) for criterion in rubric.criteria])


def can_judge(job: job_pb2.Job, dropped: str) -> bool:
    """Whether a model may judge the job's answers. `dropped` is when their texts were dropped."""
    return job.state == job_pb2.Job.STATE_COMPLETED and not job.spec.HasField("judging") and not dropped


async def judges(request: Request) -> Response:
    """The section as it is now, for a page that shows it; a whole page for a visitor."""
    ctx = context.of(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))
    if not is_fragment(request):
        return RedirectResponse(f"/jobs/{job.job_id}#job-judges", 303)
    values = {"job": job, "judges": section(job, await runs_of(request, job))}
    return fragment(request, "jobs/_judges.html", values)
