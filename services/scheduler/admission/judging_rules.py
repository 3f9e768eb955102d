"""Judges of answers, and jobs that judge. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from services import further_fields
from services.errors import InvalidRequestError
from services.words import refusals, rubrics
from services.words.sampling import further_problem
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone.v1.rubric_pb2 import Rubric

_FORMAT = "response_format"


def check_form(spec: job_pb2.JobSpec) -> None:
    """Checks what does not need the fleet, and writes rubrics in one form. Raises InvalidRequestError."""
    if len(spec.judges) > rubrics.MOST_JUDGES:
        raise InvalidRequestError(
            refusals.too_large("spec.judges", len(spec.judges), rubrics.MOST_JUDGES, "entries"), "spec.judges"
        )
    for place, judge in enumerate(spec.judges):
        path = f"spec.judges[{place}]"
        judge.rubric = _rubric(judge.rubric, f"{path}.rubric")
        _check_repeats(judge.repeats, f"{path}.repeats")
    _check_different(spec.judges)
    if not spec.HasField("judging"):
        return
    if spec.HasField("suite") or spec.judges or spec.HasField("reuse"):
        raise InvalidRequestError(
            "A job that judges takes its rows from the judged job. Leave suite, judges and reuse out.", "spec.judging"
        )
    # A job's own specification, given again, has its rubric with its scoring.
    rubric = spec.judging.rubric or spec.dataset.scoring.rubric
    if not rubric and spec.judging.against_job_id:
        rubric = rubrics.written(rubrics.comparing(None))
    spec.judging.rubric = _rubric(rubric, "spec.judging.rubric")
    if spec.judging.against_job_id == spec.judging.job_id:
        raise InvalidRequestError(
            "A job's answers cannot be compared with themselves. Name another job.", "spec.judging.against_job_id"
        )
    _check_repeats(spec.judging.repeats, "spec.judging.repeats")


def fill_in(spec: job_pb2.JobSpec, dataset: dataset_pb2.Dataset) -> None:
    """Sets the work of a job that judges: the rows that were made for it."""
    spec.judging.CopyFrom(dataset.judging)
    # It is with the scoring already.
    spec.judging.ClearField("rubric")
    spec.dataset.CopyFrom(job_pb2.DatasetWork(dataset_id=dataset.dataset_id, scoring=dataset.scoring))


def ask_for_form(spec: job_pb2.JobSpec, kind: str) -> None:
    """Asks an endpoint of this kind for a judgement's form, where the kind takes such a request and the job does not
    make its own."""
    values = further_fields.fields(spec.sampling)
    rubric = rubrics.parse(spec.dataset.scoring.rubric)
    schema = {"name": rubrics.FORM, "strict": True, "schema": rubrics.schema(rubric)}
    asked = {_FORMAT: {"type": "json_schema", "json_schema": schema}}
    if _FORMAT not in values and kind not in ("http", "baseline") and not further_problem(kind, "", asked, ""):
        further_fields.write(spec.sampling, values | asked)


def as_job(judge: job_pb2.Judge, of: job_pb2.Job) -> job_pb2.JobSpec:
    """The job in which a judge judges a completed one."""
    return job_pb2.JobSpec(
        endpoint=judge.endpoint,
        model=judge.model,
        sampling=judge.sampling,
        # What somebody waits for are the answers.
        priority=min(of.spec.priority, job_pb2.PRIORITY_NORMAL),
        project_id=of.spec.project_id,
        budget_usd=judge.budget_usd,
        max_model_b=judge.max_model_b,
        judging=job_pb2.Judging(job_id=of.job_id, rubric=judge.rubric, repeats=judge.repeats, attempt=of.attempt),
    )


def request_id(job_id: str, attempt: int, place: int) -> str:
    """Of the request that creates the judge at this place among those that a run names. No user can choose one with
    spaces."""
    return f"judge {job_id} {attempt} {place}"


Identity = tuple[str, str, str, bytes]
"""Equal for judges that are the same."""


def identity(judge: job_pb2.Judge) -> Identity:
    """Without repeats and limits: these say how much is asked of the judge."""
    return judge.endpoint, judge.model, judge.rubric, judge.sampling.SerializeToString(deterministic=True)


def asked_for(request: str) -> tuple[str, int] | None:
    """The job and the attempt of which a `request_id` creates the judge; None for any other."""
    found = re.fullmatch(r"judge (\S+) (\d+) \d+", request)
    return (found[1], int(found[2])) if found else None


def _check_different(judges: Sequence[job_pb2.Judge]) -> None:
    """Each would judge, and cost, all answers once more."""
    known: dict[Identity, int] = {}
    for place, judge in enumerate(judges):
        first = known.setdefault(identity(judge), place)
        if first != place:
            raise InvalidRequestError(
                f"{judge.model} at {judge.endpoint} is given twice as the same judge, as number {first + 1} and "
                f"{place + 1}. Leave one out; repeats asks a judge several times.",
                f"spec.judges[{place}]",
            )


def _rubric(text: str, field: str) -> str:
    return rubrics.written(_parsed(text, field))


def _parsed(text: str, field: str) -> Rubric:
    if not text:
        raise InvalidRequestError("A judge needs a rubric. Set rubric.", field)
    try:
        return rubrics.parse(text)
    except ValueError as error:
        raise InvalidRequestError(f"The rubric {error}.", field) from error


def _check_repeats(repeats: int, field: str) -> None:
    if not 0 <= repeats <= rubrics.MOST_REPEATS:
        raise InvalidRequestError(refusals.between(field, 1, rubrics.MOST_REPEATS), field)
