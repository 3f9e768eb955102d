"""Which runs are meant: by job, configuration, model at an endpoint, or model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.errors import InvalidRequestError, NotFoundError
from services.results.comparison.selection import candidates, runs
from services.results.comparison.selection.runs import Run
from services.results.runs.configurations import JOB_ID
from services.results.runs.job_reads import not_found
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from services.words import phrases, refusals
from services.words.enums import MODES
from services.words.jobs import mode_of, require_project, suite_of
from touchstone.v1 import comparison_pb2, job_pb2, suite_pb2

MOST = 20
"""Runs compared at once."""

_LONGEST = 400
"""Characters of a subject."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The runs, in the order of their jobs. `baseline` is the job that the others are compared with, or ""."""

    suite: str
    mode: suite_pb2.Mode
    runs: Sequence[Run]
    baseline: str
    notes: Sequence[str]


def choose(connection: Connection, request: comparison_pb2.CompareRequest, visible: Visibility) -> Chosen:
    """Raises InvalidRequestError for too few or too many subjects, a name of several configurations, and jobs of
    different suites; NotFoundError for a subject without a finished run."""
    subjects = _subjects(request)
    require_project(request.project_id)
    if request.mode and request.mode not in MODES.values():
        raise InvalidRequestError(refusals.MODE, "mode")
    jobs = _jobs(connection, subjects, visible)
    for subject in subjects:
        if not request.suite and subject not in jobs and JOB_ID.fullmatch(subject):
            raise not_found(connection, subject, visible)
    suite = _suite(request.suite, [job for job, _ in jobs.values()], len(jobs) == len(subjects))
    mode = request.mode or _mode([job for job, _ in jobs.values()])
    for job, sealed in jobs.values():
        _require_finished(job, sealed)
        if request.project_id not in (0, job.spec.project_id):
            raise NotFoundError(
                f"Job {job.job_id} does not belong to project {request.project_id}. Leave the project out, or name "
                "another job."
            )
    names = [subject for subject in subjects if subject not in jobs]
    found = candidates.find(connection, names, suite, mode, request.project_id, visible) if names else {}
    meant: dict[str, list[str]] = {}
    for subject in subjects:
        job_id = subject if subject in jobs else found[subject].candidate.job_id
        meant.setdefault(job_id, []).append(subject)
    if len(meant) < 2:
        raise InvalidRequestError(
            f"{_listed(subjects)} are the same run, job {next(iter(meant))}. Name a different run to compare it with.",
            "subjects",
        )
    baseline = next((job for job, called in meant.items() if request.baseline.strip() in called), "")
    notes = [note for name in names for note in found[name].notes(name)]
    notes += [f"{_listed(called)} are the same run." for called in meant.values() if len(called) > 1]
    loaded = runs.load(connection, {job_id: called[0] for job_id, called in meant.items()})
    return Chosen(suite, mode, loaded, baseline, notes)


def require_jobs(connection: Connection, job_ids: Sequence[str], visible: Visibility) -> str:
    """The suite of these jobs. Raises NotFoundError for a job without a finished run, and InvalidRequestError for jobs
    of several suites."""
    jobs = _jobs(connection, job_ids, visible)
    for job_id in job_ids:
        if job_id not in jobs:
            raise not_found(connection, job_id, visible)
    for job, sealed in jobs.values():
        _require_finished(job, sealed)
    return _suite("", [job for job, _ in jobs.values()], complete=True)


def _subjects(request: comparison_pb2.CompareRequest) -> list[str]:
    """What is compared, including the baseline, each once. Raises InvalidRequestError for too few, too many or too long
    ones."""
    subjects = sorted({subject.strip() for subject in (*request.subjects, request.baseline)} - {""})
    if len(subjects) < 2:
        raise InvalidRequestError("Name at least two runs to compare.", "subjects")
    if any(len(subject) > _LONGEST for subject in subjects):
        raise InvalidRequestError(f"A subject must have at most {_LONGEST} characters. Name a run.", "subjects")
    if len(subjects) > MOST:
        raise InvalidRequestError(refusals.too_large("The comparison", len(subjects), MOST, "runs"), "subjects")
    return subjects


def _jobs(connection: Connection, subjects: Sequence[str], visible: Visibility) -> dict[str, tuple[job_pb2.Job, bool]]:
    """Subjects that are jobs, and whether the jobs are sealed."""
    rows = connection.execute(
        "SELECT j.job, s.job_id IS NOT NULL "
        "FROM jobs j LEFT JOIN seals s ON s.job_id = j.job_id AND s.attempt >= j.attempt "
        "WHERE list_contains($subjects::VARCHAR[], j.job_id) AND ($visible_owner = '' OR j.owner = $visible_owner)",
        {"subjects": subjects, **visible.parameters},
    ).fetchall()
    jobs = [(job_pb2.Job.FromString(blob), sealed) for blob, sealed in rows]
    return {job.job_id: (job, sealed) for job, sealed in jobs}


def _suite(asked: str, jobs: Sequence[job_pb2.Job], complete: bool) -> str:
    """The suite of all compared runs; `complete` says that every subject is a job."""
    of_jobs = sorted({suite_of(job.spec) for job in jobs})
    if len(of_jobs) > 1 or (asked and of_jobs and of_jobs != [asked]):
        raise InvalidRequestError(
            f"The jobs ran {_listed(of_jobs)}{f', not {asked}' if asked else ''}. Only runs of one suite can be "
            "compared.",
            "suite",
        )
    if not asked and not complete:
        raise InvalidRequestError("Name the suite. Leave it out only if every subject is a job.", "suite")
    return asked or "".join(of_jobs)


def _mode(jobs: Sequence[job_pb2.Job]) -> suite_pb2.Mode:
    modes = {mode_of(job.spec) for job in jobs}
    return modes.pop() if len(modes) == 1 else suite_pb2.MODE_GENERATE


def _require_finished(job: job_pb2.Job, sealed: bool) -> None:
    if job.state in phrases.ENDED_EARLY:
        what = phrases.ENDED_EARLY[job.state]
        raise NotFoundError(
            f"Job {job.job_id} {what}: it has no finished run to compare. Retry it, or name another job."
        )
    # A result may be stored a moment before the event that brings the job's plan.
    if not sealed or not job.plan:
        raise NotFoundError(f"Job {job.job_id} has no finished run yet. Compare it when it is finished.")


def _listed(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
