"""Jobs as rows of a table, with the averages of those that are sealed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.gateway.pages import formatting
from services.gateway.pages.figures import Figure, figure
from touchstone.v1 import job_pb2, results_service_pb2


@dataclass(frozen=True, slots=True)
class JobRow:
    """`why` says why a completed run does not rank; empty while it ranks, or may still."""

    job: job_pb2.Job
    score: Figure
    accuracy: Figure
    asked: tuple[str, ...]
    why: str


def job_rows(found: Iterable[job_pb2.Job], scores: Iterable[results_service_pb2.JobScores]) -> list[JobRow]:
    """One for each job, in the same order. A job without scores has dashes."""
    by_job = {one.job_id: one for one in scores}
    return [_row(job, by_job.get(job.job_id, results_service_pb2.JobScores())) for job in found]


def asked(spec: job_pb2.JobSpec) -> tuple[str, ...]:
    """The mode, and what of shots and repeats is not the default: "generate", "5-shot", "3 answers"."""
    shots, repeats = spec.suite.shots, spec.suite.repeats
    words = formatting.mode(spec.mode), f"{shots}-shot" if shots else "", f"{repeats} answers" if repeats > 1 else ""
    return tuple(filter(None, words))


def _row(job: job_pb2.Job, scores: results_service_pb2.JobScores) -> JobRow:
    averages = {average.metric: average for average in scores.averages}
    ranks = not (scores.not_ranked_reason or job.incomplete)
    return JobRow(
        job=job,
        score=figure(averages.get("score"), ranks=ranks),
        accuracy=figure(averages.get("accuracy"), ranks=ranks),
        asked=asked(job.spec),
        why=scores.not_ranked_reason if job.state == job_pb2.Job.STATE_COMPLETED else "",
    )
