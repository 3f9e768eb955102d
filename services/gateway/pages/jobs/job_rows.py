"""Jobs as rows of a table, with the averages of those that are sealed: an estimate, its bounds, or a dash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.gateway.pages.display import formatting
from services.gateway.pages.display.work_words import scorer_name
from services.words.enums import reading_name
from services.words.jobs import is_rescore
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2


@dataclass(frozen=True, slots=True)
class Figure:
    """`text` and `interval` are × 100. If `bounded`, the text is the range that missing answers leave open."""

    text: str = formatting.MISSING
    interval: str = ""
    bounded: bool = False


def figure(metric: metric_pb2.Metric | None, *, ranks: bool) -> Figure:
    """What is known about an average. A run that does not rank shows no estimate that missing answers could still
    change."""
    if metric is None:
        return Figure()
    if not (ranks and metric.HasField("mean")) and (open_to := formatting.bounds(metric)):
        return Figure(open_to, bounded=True)
    if not metric.HasField("mean") or not (ranks or metric.HasField("bound_low")):
        return Figure()
    return Figure(formatting.hundredths(metric.mean), formatting.interval(metric))


@dataclass(frozen=True, slots=True)
class JobRow:
    """`why` says why a completed run does not rank; empty while it ranks, or may still. `caution` says which answers
    count as wrong because they were not read. `unscored`: none of its rows has a reference, so it cannot rank.
    """

    job: job_pb2.Job
    score: Figure
    accuracy: Figure
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
        asked=asked(job.spec),
        why=why,
        caution="" if why else scores.caution,
        # Not "4 items have no answer": the only reason for no rank is that the score itself is undefined.
        unscored=bool(why) and score is not None and score.undefined_reason == why,
    )
