"""How answers are scored and read, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from services.words import enums
from touchstone.v1 import job_pb2, scoring_pb2

USUAL = "exact_match"
"""Of rows whose dataset or job names no scorer."""
SCORERS = {
    "exact_match": "exact match",
    "contains": "presence of the reference",
    "regex": "pattern match",
    "choice": "choice",
    "numeric": "number",
    "token_f1": "token F1",
    "rouge_l": "ROUGE-L",
    "json": "equal JSON fields",
}
USUAL_READINGS = {
    USUAL: scoring_pb2.READING_MARKED,
    "choice": scoring_pb2.READING_LENIENT,
    "numeric": scoring_pb2.READING_LENIENT,
}
"""Of scorers that look for the answer in a response: the layers that they take unless a job says otherwise."""
OPTIONS: dict[str, tuple[Literal["choices", "tolerance", "tolerance_is_relative", "fields"], ...]] = {
    "choice": ("choices",),
    "numeric": ("tolerance", "tolerance_is_relative"),
    "json": ("fields",),
}
_LISTED = 6
"""Choices and fields that are named."""


def of_job(spec: job_pb2.JobSpec) -> scoring_pb2.Scoring:
    """Of a job over a dataset, without options that its scorer does not read: equal ones score alike. Of another job
    the default."""
    work = spec.dataset
    asked = work.scoring
    if work.scorer and asked.scorer != work.scorer:
        asked = scoring_pb2.Scoring(scorer=work.scorer)
    kept = scoring_pb2.Scoring()
    kept.CopyFrom(asked)
    kept.scorer = asked.scorer or USUAL
    if kept.answer_match == scoring_pb2.ANSWER_MATCH_LAST:
        kept.ClearField("answer_match")
    for scorer, options in OPTIONS.items():
        for option in options if scorer != kept.scorer else ():
            kept.ClearField(option)
    return kept


def reading_of(spec: job_pb2.JobSpec, plan: job_pb2.TaskPlan) -> scoring_pb2.Reading:
    """Layers by which a task's answers were read. Plans of earlier versions do not tell: they took the usual ones."""
    if plan.reading:
        return plan.reading
    usual_is_marked = spec.HasField("dataset") and of_job(spec).scorer == USUAL
    return scoring_pb2.READING_MARKED if usual_is_marked else scoring_pb2.READING_LENIENT


def layer(reading: scoring_pb2.Reading) -> str:
    """ "lenient"."""
    return enums.READINGS.of(reading)


def of_items(job: job_pb2.Job) -> str:
    """How the scores of a job's item set come about where others over the same items differ; "" where none does."""
    if job.spec.HasField("dataset"):
        read = {job.spec.reading} - {scoring_pb2.READING_UNSPECIFIED}
    else:
        read = {plan.reading for plan in job.plan} & {scoring_pb2.READING_STRICT, scoring_pb2.READING_MARKED}
    named = " and ".join(layer(reading) for reading in sorted(read))
    return "; ".join(filter(None, (words(job.spec), f"answers read by the {named} layer" if named else "")))


def words(spec: job_pb2.JobSpec) -> str:
    """In one line; "" for a job that is not over a dataset."""
    if not spec.HasField("dataset"):
        return ""
    scoring = of_job(spec)
    said = [SCORERS.get(scoring.scorer, scoring.scorer) + _details(scoring)]
    if scoring.reference_field:
        said.append(f"reference in “{scoring.reference_field}”")
    if scoring.answer_pattern:
        first = "the first match of " if scoring.answer_match == scoring_pb2.ANSWER_MATCH_FIRST else ""
        said.append(f"answer taken by {first}“{scoring.answer_pattern}”")
    return "; ".join(said)


def _details(scoring: scoring_pb2.Scoring) -> str:
    if scoring.scorer == "numeric" and scoring.tolerance:
        share = f"{100 * scoring.tolerance:g} % of the reference"
        return f" within {share if scoring.tolerance_is_relative else f'{scoring.tolerance:g}'}"
    if scoring.scorer == "choice" and scoring.choices:
        return f" of {_listed(scoring.choices)}"
    if scoring.scorer == "json" and scoring.fields:
        return f" {_listed(scoring.fields)}"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
