"""Job specs: new ones, or copies for jobs that take another job's answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from google.protobuf import json_format

from services.words import enums, rubrics
from services.words.fields import Field
from services.words.job_options import ALL, DATASET, SUITE, DatasetJobOptions, SuiteJobOptions, fill
from services.words.jobs import items_of, suite_of
from services.words.refusals import counted
from services.words.sampling import SamplingParameters
from services.words.scorers import ScoringOptions, scoring_of
from touchstone.v1 import item_result_pb2, job_pb2, scoring_pb2
from touchstone.v1.rubric_pb2 import Rubric
from touchstone_client.errors import InvalidError

RERUN = enums.RERUN | {
    "truncated": enums.RERUN["output_truncated"],
    "error": enums.RERUN["infrastructure_error"],
}
"""Words for the outcomes whose items can run again, two of them also in a short form."""
OF_ITEMS = ("items", "batch", "golden", "preferences")
"""Kinds of export of one job's items."""
SIDE_BY_SIDE_FILTERS = {
    word.replace("_", "-"): value for word, value in enums.SIDE_BY_SIDE_FILTERS.items() if "judged" not in word
}
PILOT = "pilot"
"""The label of a job that was run to estimate another one. Its value is the other's limit, 0 for all."""
DATASET_TASK = "rows"
"""The one task of a run over an uploaded dataset."""


class JudgeOptions(TypedDict, total=False):
    """Options of a judge. `repeats` are its judgements of each answer, one unless given; `budget_usd` is for its own
    job, None for no budget."""

    sampling: job_pb2.Sampling | None
    repeats: int
    budget_usd: float | None


def subset_of(job: job_pb2.Job) -> str:
    """What a job leaves out, as in "subset, 80 of 9,815 items"; empty for whole suites, and before planning."""
    if not job.subset:
        return ""
    return f"subset, {items_of(job):,} of {counted(job.published_items, 'item')}" if job.published_items else "subset"


def suite_spec(
    suite: str,
    *,
    endpoint: str,
    model: str,
    judges: Iterable[job_pb2.Judge] = (),
    **options: Unpack[SuiteJobOptions],
) -> job_pb2.JobSpec:
    """A run of one model on one suite. Without options it has all items, no examples and one answer per item. Once it
    is completed, each of `judges` judges its answers in a separate job.

    Raises KeyError for a word that a choice does not have, TypeError for an option that no job has, and InvalidError
    for an option that runs over a suite do not have and for a budget out of range.
    """
    _require_known(options, SUITE, "a suite")
    spec = job_pb2.JobSpec(endpoint=endpoint, model=model, suite=job_pb2.SuiteWork(suite=suite), judges=judges)
    fill(spec, options)
    return spec


def dataset_spec(
    dataset_id: str,
    *,
    endpoint: str,
    model: str,
    judges: Iterable[job_pb2.Judge] = (),
    **options: Unpack[DatasetJobOptions],
) -> job_pb2.JobSpec:
    """A run of one model on an uploaded dataset. Without options it has all rows and the dataset's own scoring;
    `judges` as in `suite_spec`.

    Raises KeyError for a word that a choice does not have, TypeError for an option that no job has, and InvalidError
    for an option that runs over a dataset do not have and for a budget out of range.
    """
    _require_known(options, DATASET, "a dataset")
    work = job_pb2.DatasetWork(dataset_id=dataset_id)
    spec = job_pb2.JobSpec(endpoint=endpoint, model=model, dataset=work, judges=judges)
    fill(spec, options)
    return spec


def judge_spec(
    *, endpoint: str, model: str, rubric: Mapping[str, Any] | str | None = None, **options: Unpack[JudgeOptions]
) -> job_pb2.Judge:
    """A model that judges answers by a rubric: an object with the names of `touchstone.v1.Rubric`, or its JSON. Judges
    of an experiment have none: they judge by that of the experiment.

    Raises InvalidError for a rubric that the services would refuse and for a budget out of range.
    """
    written = "" if rubric is None else rubrics.written(rubric_of(rubric))
    budget_usd = options.get("budget_usd")
    _require_budget(budget_usd)
    return job_pb2.Judge(
        endpoint=endpoint,
        model=model,
        rubric=written,
        sampling=options.get("sampling"),
        repeats=options.get("repeats", 0),
        budget_usd=budget_usd or 0.0,
    )


def rubric_of(rubric: Mapping[str, Any] | str) -> Rubric:
    """The rubric that an object or its JSON says. Raises InvalidError for one that the services would refuse."""
    try:
        return rubrics.parse(rubric) if isinstance(rubric, str) else rubrics.of_value(rubric)
    except ValueError as error:
        raise InvalidError.of(f"The rubric {error}.") from error


def judging_spec(job_id: str, judge: job_pb2.Judge, priority: str = "", against: str = "") -> job_pb2.JobSpec:
    """The job in which a judge judges the stored answers of a completed one, or compares them with those of the job
    `against`. Raises KeyError for another word than those of `services.words.enums.PRIORITIES`, and InvalidError
    without rubric and `against`."""
    if not (judge.rubric or against):
        raise InvalidError.of("A judge needs a rubric, unless it compares with another job. Set rubric or against.")
    return job_pb2.JobSpec(
        endpoint=judge.endpoint,
        model=judge.model,
        sampling=judge.sampling if judge.HasField("sampling") else None,
        budget_usd=judge.budget_usd,
        priority=enums.PRIORITIES[priority] if priority else None,
        judging=job_pb2.Judging(job_id=job_id, rubric=judge.rubric, repeats=judge.repeats, against_job_id=against),
    )


def _require_known(options: Mapping[str, Any], known: Mapping[str, Field], work: str) -> None:
    """A misspelt limit would be silently ignored, and so would an option of another kind of job."""
    if unknown := options.keys() - ALL.keys():
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}. Known: {', '.join(ALL)}.")
    if wrong := [name for name, value in options.items() if name not in known and value is not None]:
        raise InvalidError.of(
            f"Runs over {work} do not take {', '.join(wrong)}. Leave {'it' if len(wrong) == 1 else 'them'} out."
        )
    _require_budget(options.get("budget_usd"))


def _require_budget(budget_usd: float | None) -> None:
    """In a specification 0 means no budget; here None does."""
    if budget_usd is not None and (problem := ALL["budget_usd"].problem(budget_usd, "budget_usd")):
        raise InvalidError.of(problem)


def changed_scoring(known: scoring_pb2.Scoring, **given: Unpack[ScoringOptions]) -> scoring_pb2.Scoring:
    """Another way of scoring the same dataset. With another scorer, the reference's place stays, and so does the way to
    take the answer from a response. Raises KeyError for a word that a choice does not have."""
    asked = {name: value for name, value in given.items() if value is not None}
    if asked.get("scorer", known.scorer) == known.scorer:
        made = scoring_pb2.Scoring()
        made.CopyFrom(known)
    else:
        made = scoring_pb2.Scoring(
            reference_field=known.reference_field,
            group_field=known.group_field,
            answer_pattern=known.answer_pattern,
            answer_match=known.answer_match,
        )
    for name in asked:
        made.ClearField(name)
    made.MergeFrom(scoring_of(asked))
    if not made.answer_pattern and "answer_match" not in asked:
        made.ClearField("answer_match")
    return made


def sampling_parameters(
    custom: Mapping[str, Any] | None = None, **parameters: Unpack[SamplingParameters]
) -> job_pb2.Sampling:
    """Sampling parameters; None is left out. `custom` is merged into the provider's request as it is.

    Raises ValueError for a value that JSON does not have.
    """
    message = job_pb2.Sampling()
    for name, value in parameters.items():
        if value is not None:
            setattr(message, name, value)
    if custom:
        message.extra_json = json.dumps(custom, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return message


def further_fields(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """The fields given as `custom`, in their order; for jobs of versions up to 0.1, which did not keep it, in any
    order."""
    if sampling.extra_json:
        found: dict[str, Any] = json.loads(sampling.extra_json)
        return found
    return json_format.MessageToDict(sampling.extra)


def rescore_spec(
    source: job_pb2.Job,
    scoring: scoring_pb2.Scoring | None = None,
    reading: str = "",
    further: Sequence[scoring_pb2.Scoring] | None = None,
) -> job_pb2.JobSpec:
    """Scores the stored answers of a finished job with the present scorer or, for uploaded rows, with `scoring`.
    `reading` is a word of READINGS; empty means as before, or another scoring's default. `further` are the further
    scorers; None means as before.

    Raises InvalidError for another scoring of a suite.
    """
    spec = _taking(source, ())
    # No call is made, so there is nothing to limit, to send or to judge; a batch's day is longer than a run's time.
    if spec.provider_batch:
        spec.ClearField("time_limit_s")
    spec.ClearField("provider_batch")
    spec.ClearField("budget_usd")
    spec.ClearField("judges")
    if (scoring is not None or further is not None) and spec.WhichOneof("work") != "dataset":
        raise InvalidError.of(
            f"Job {source.job_id} ran {suite_of(spec)}, whose tasks have their own scorers. Only uploaded rows "
            "take another scorer."
        )
    if further is not None:
        spec.dataset.ClearField("further")
        spec.dataset.further.extend(further)
    if scoring is not None:
        spec.dataset.ClearField("scorer")
        spec.dataset.scoring.CopyFrom(scoring)
        spec.ClearField("reading")
    if reading:
        spec.reading = enums.READINGS[reading]
    return spec


def rerun_spec(
    source: job_pb2.Job,
    outcomes: Iterable[item_result_pb2.Outcome],
    max_tokens: int | None = None,
    context_length: int | None = None,
    budget_usd: float | None = None,
) -> job_pb2.JobSpec:
    """Asks again for the items of a finished job with these outcomes, perhaps with other limits; takes its other
    answers.

    `budget_usd` is for the new job alone; None means the first one's budget. Raises InvalidError for one out of range.
    """
    _require_budget(budget_usd)
    spec = _taking(source, outcomes)
    if max_tokens is not None:
        spec.sampling.max_tokens = max_tokens
    if context_length is not None:
        spec.sampling.context_length = context_length
    if budget_usd is not None:
        spec.budget_usd = budget_usd
    return spec


def _taking(source: job_pb2.Job, outcomes: Iterable[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=outcomes))
    # The rows of a job that judges are there already.
    spec.ClearField("judging")
    # The first job's webhook was not requested for this one.
    spec.webhook_url = spec.schedule_id = ""
    return spec
