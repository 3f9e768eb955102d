"""Job specs: made new, or copied from a job whose answers are taken."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format

from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, results_service_pb2, scoring_pb2, suite_pb2
from touchstone_client.errors import InvalidError

MODES = {"generate": suite_pb2.MODE_GENERATE, "loglikelihood": suite_pb2.MODE_LOGLIKELIHOOD}
WEIGHTINGS = {"items": suite_pb2.WEIGHTING_ITEMS, "tasks": suite_pb2.WEIGHTING_TASKS}
"""What counts alike in a score."""
RERUN = {
    "truncated": item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    "unparsed": item_result_pb2.OUTCOME_UNPARSED,
    "refused": item_result_pb2.OUTCOME_REFUSED,
    "input_truncated": item_result_pb2.OUTCOME_INPUT_TRUNCATED,
    "error": item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
}
"""Words for the outcomes whose items can run again."""
READINGS = {
    "strict": scoring_pb2.READING_STRICT,
    "marked": scoring_pb2.READING_MARKED,
    "lenient": scoring_pb2.READING_LENIENT,
}
"""Layers by which answers are read; each also takes what the ones before it take."""
PRIORITIES = {"high": job_pb2.PRIORITY_HIGH, "normal": job_pb2.PRIORITY_NORMAL, "low": job_pb2.PRIORITY_LOW}
STATES = {
    "pending": (job_pb2.Job.STATE_PENDING,),
    "running": (job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_FINALIZING),
    "completed": (job_pb2.Job.STATE_COMPLETED,),
    "failed": (job_pb2.Job.STATE_FAILED,),
    "cancelled": (job_pb2.Job.STATE_CANCELLED,),
}
"""A job's status, in the words of the REST API."""
FINISHED = (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)
ITEM_FILTERS = {
    "all": results_service_pb2.ListItemsRequest.FILTER_UNSPECIFIED,
    "failures": results_service_pb2.ListItemsRequest.FILTER_FAILURES,
    "correct": results_service_pb2.ListItemsRequest.FILTER_CORRECT,
    "unparsed": results_service_pb2.ListItemsRequest.FILTER_UNPARSED,
    "errors": results_service_pb2.ListItemsRequest.FILTER_ERRORS,
    "truncated": results_service_pb2.ListItemsRequest.FILTER_TRUNCATED,
    "refused": results_service_pb2.ListItemsRequest.FILTER_REFUSED,
    "different": results_service_pb2.ListItemsRequest.FILTER_DIFFERENT,
    "regressed": results_service_pb2.ListItemsRequest.FILTER_REGRESSED,
    "improved": results_service_pb2.ListItemsRequest.FILTER_IMPROVED,
}
EXPORT_KINDS = {
    "jobs": results_service_pb2.ExportRequest.KIND_JOBS,
    "metrics": results_service_pb2.ExportRequest.KIND_METRICS,
    "items": results_service_pb2.ExportRequest.KIND_ITEMS,
    "batch": results_service_pb2.ExportRequest.KIND_BATCH_OUTPUT,
    "golden": results_service_pb2.ExportRequest.KIND_GOLDEN,
}
OF_ITEMS = ("items", "batch", "golden")
"""Kinds of export that are about one job's items."""
EXPORT_FORMATS = {
    "csv": results_service_pb2.ExportRequest.FORMAT_CSV,
    "json": results_service_pb2.ExportRequest.FORMAT_JSON,
    "jsonl": results_service_pb2.ExportRequest.FORMAT_JSONL,
    "parquet": results_service_pb2.ExportRequest.FORMAT_PARQUET,
}
SIDE_BY_SIDE_FILTERS = {
    "all": results_service_pb2.ListSideBySideRequest.FILTER_UNSPECIFIED,
    "agree": results_service_pb2.ListSideBySideRequest.FILTER_AGREE,
    "disagree": results_service_pb2.ListSideBySideRequest.FILTER_DISAGREE,
    "only-right": results_service_pb2.ListSideBySideRequest.FILTER_ONLY_RIGHT,
    "only-wrong": results_service_pb2.ListSideBySideRequest.FILTER_ONLY_WRONG,
    "all-right": results_service_pb2.ListSideBySideRequest.FILTER_ALL_RIGHT,
    "all-wrong": results_service_pb2.ListSideBySideRequest.FILTER_ALL_WRONG,
}
VERDICTS = {
    "none": results_service_pb2.Annotation.VERDICT_UNSPECIFIED,
    "golden": results_service_pb2.Annotation.VERDICT_GOLDEN,
    "fix": results_service_pb2.Annotation.VERDICT_FIX,
    "wrong": results_service_pb2.Annotation.VERDICT_WRONG,
}
"""What a person says of an answer."""
SCORERS = ("exact_match", "contains", "regex", "choice", "numeric", "token_f1", "rouge_l", "json")
DATASET_FORMATS = {
    "batch": dataset_pb2.Dataset.FORMAT_BATCH,
    "lines": dataset_pb2.Dataset.FORMAT_LINES,
    "columns": dataset_pb2.Dataset.FORMAT_COLUMNS,
    "csv": dataset_pb2.Dataset.FORMAT_CSV,
}
"""What a file's rows may be; told by its content unless said."""
LAST_ASSISTANT = {
    "reference": job_pb2.LAST_ASSISTANT_REFERENCE,
    "prefill": job_pb2.LAST_ASSISTANT_PREFILL,
    "refuse": job_pb2.LAST_ASSISTANT_REFUSE,
}
"""What becomes of a row's last message where it is the assistant's."""
PILOT = "pilot"
"""The label of a job that was run to estimate another: that one's limit, 0 for all."""
DATASET_TASK = "rows"
"""The one task of a run over an uploaded dataset."""
MARKS = {
    "valid": results_service_pb2.RUN_MARK_VALID,
    "invalidated": results_service_pb2.RUN_MARK_INVALIDATED,
    "superseded": results_service_pb2.RUN_MARK_SUPERSEDED,
}


def status(job: job_pb2.Job) -> str:
    """The job's status in a word of STATES."""
    return next((word for word, states in STATES.items() if job.state in states), "unknown")


def mode_of(job: job_pb2.Job) -> str:
    """The job's mode in a word of MODES."""
    return "loglikelihood" if job.spec.mode == suite_pb2.MODE_LOGLIKELIHOOD else "generate"


def reading_of(reading: scoring_pb2.Reading) -> str:
    """In a word of READINGS; empty for none in particular."""
    return next((word for word, known in READINGS.items() if known == reading), "")


def suite_of(spec: job_pb2.JobSpec) -> str:
    """What the job is filed under: a suite's name, a dataset's id, an experiment's name."""
    match spec.WhichOneof("work"):
        case "suite":
            return spec.suite.suite
        case "dataset":
            return spec.dataset.dataset_id
        case "experiment":
            return spec.experiment.experiment
    return ""


def work_of(spec: job_pb2.JobSpec) -> str:
    """What the job runs, as people know it: a dataset by its name."""
    return (spec.dataset.name if spec.WhichOneof("work") == "dataset" else "") or suite_of(spec)


def items_of(job: job_pb2.Job) -> int:
    """Items that the job was planned to run; 0 before that."""
    return sum(plan.items for plan in job.plan)


def subset_of(job: job_pb2.Job) -> str:
    """What a job leaves out, as in "subset, 80 of 9,815 items"; empty for whole suites, and before planning."""
    if not job.subset:
        return ""
    return f"subset, {items_of(job):,} of {job.published_items:,} items" if job.published_items else "subset"


def suite_spec(
    suite: str,
    *,
    endpoint: str,
    model: str,
    mode: str = "generate",
    tasks: Iterable[str] = (),
    limit: int = 0,
    shots: int = 0,
    repeats: int = 0,
    seed: int = 0,
    reading: str = "",
    stream: bool = False,
    sampling: job_pb2.Sampling | None = None,
    priority: str = "",
    project_id: int = 0,
    time_limit_s: int = 0,
    webhook_url: str = "",
    any_job: bool = False,
) -> job_pb2.JobSpec:
    """A run of one model on one suite. Numbers as in SuiteWork: 0 means all items, no examples, one answer.

    `reading` is a word of READINGS; empty means each task's own. `priority` is a word of PRIORITIES; empty means high.
    `any_job` takes equal requests' answers from any job.
    """
    return job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        mode=MODES[mode],
        sampling=sampling,
        stream=stream,
        priority=PRIORITIES[priority] if priority else None,
        project_id=project_id,
        time_limit_s=time_limit_s,
        webhook_url=webhook_url,
        reuse=job_pb2.Reuse(any_job=True) if any_job else None,
        reading=READINGS[reading] if reading else None,
        suite=job_pb2.SuiteWork(suite=suite, tasks=tasks, limit=limit, shots=shots, repeats=repeats, seed=seed),
    )


def dataset_spec(
    dataset_id: str,
    *,
    endpoint: str,
    model: str,
    limit: int = 0,
    seed: int = 0,
    scoring: scoring_pb2.Scoring | None = None,
    reading: str = "",
    stream: bool = False,
    sampling: job_pb2.Sampling | None = None,
    priority: str = "",
    project_id: int = 0,
    time_limit_s: int = 0,
    webhook_url: str = "",
    any_job: bool = False,
    labels: Mapping[str, str] | None = None,
    budget_usd: float = 0.0,
    provider_batch: bool = False,
) -> job_pb2.JobSpec:
    """A run of one model on an uploaded dataset. `limit` 0 means all rows; without `scoring` the dataset's own holds.

    `reading` is a word of READINGS; empty means the scorer's own. `priority` is a word of PRIORITIES; empty means
    normal. `any_job` takes equal requests' answers from any job. No call begins that could cost more than `budget_usd`
    in all, 0 meaning any. `provider_batch` sends the rows through the provider's own batch API.
    """
    return job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        sampling=sampling,
        stream=stream,
        priority=PRIORITIES[priority] if priority else None,
        project_id=project_id,
        time_limit_s=time_limit_s,
        webhook_url=webhook_url,
        reuse=job_pb2.Reuse(any_job=True) if any_job else None,
        labels=labels or {},
        budget_usd=budget_usd,
        provider_batch=provider_batch,
        reading=READINGS[reading] if reading else None,
        dataset=job_pb2.DatasetWork(dataset_id=dataset_id, limit=limit, seed=seed, scoring=scoring),
    )


def changed_scoring(known: scoring_pb2.Scoring, **given: Any) -> scoring_pb2.Scoring:
    """Another way of scoring the same dataset: what is given by the names in the proto, None meaning nothing. With
    another scorer the reference stays where it was, and so does how the answer is taken out of a response."""
    asked = {name: value for name, value in given.items() if value is not None}
    if asked.get("scorer", known.scorer) == known.scorer:
        made = scoring_pb2.Scoring()
        made.CopyFrom(known)
    else:
        made = scoring_pb2.Scoring(
            reference_field=known.reference_field, answer_pattern=known.answer_pattern, answer_match=known.answer_match
        )
    for name in asked:
        made.ClearField(name)
    made.MergeFrom(scoring_pb2.Scoring(**asked))
    if not made.answer_pattern and "answer_match" not in asked:
        made.ClearField("answer_match")
    return made


def sampling_parameters(custom: Mapping[str, Any] | None = None, **parameters: float | None) -> job_pb2.Sampling:
    """Sampling parameters by their names in the protos; None is left out. `custom` is merged into the provider's
    request as it is. Raises ValueError for a value that JSON does not have."""
    message = job_pb2.Sampling()
    for name, value in parameters.items():
        if value is not None:
            setattr(message, name, value)
    if custom:
        message.extra_json = json.dumps(custom, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return message


def further_fields(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """What was given as `custom`, in its order; of jobs of versions up to 0.1, which did not keep it, in any."""
    if sampling.extra_json:
        found: dict[str, Any] = json.loads(sampling.extra_json)
        return found
    return json_format.MessageToDict(sampling.extra)


def rescore_spec(source: job_pb2.Job, scoring: scoring_pb2.Scoring | None = None, reading: str = "") -> job_pb2.JobSpec:
    """Scores the stored answers of a finished job with the present scorer or, of uploaded rows, as `scoring` says.
    `reading` is a word of READINGS; empty means as before, or of another scoring its own.

    Raises InvalidError for another scoring of a suite.
    """
    spec = _taking(source, ())
    # No call is made, so there is nothing to bound and nothing to send; a batch's day is longer than a run's time.
    if spec.provider_batch:
        spec.ClearField("time_limit_s")
    spec.ClearField("provider_batch")
    spec.ClearField("budget_usd")
    if scoring is not None:
        if spec.WhichOneof("work") != "dataset":
            raise InvalidError.of(
                f"Job {source.job_id} ran {suite_of(spec)}, whose tasks have scorers of their own. Another scorer can "
                "be asked for where rows were uploaded."
            )
        spec.dataset.ClearField("scorer")
        spec.dataset.scoring.CopyFrom(scoring)
        spec.ClearField("reading")
    if reading:
        spec.reading = READINGS[reading]
    return spec


def rerun_spec(
    source: job_pb2.Job,
    outcomes: Iterable[item_result_pb2.Outcome],
    max_tokens: int | None = None,
    context_length: int | None = None,
    budget_usd: float | None = None,
) -> job_pb2.JobSpec:
    """Asks again for the items of a finished job that ended so, perhaps with other limits; takes its other answers.

    `budget_usd` is for the new job alone; None means as much as the first one's.
    """
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
    # Who asked for the first job to be announced did not ask for this one.
    spec.webhook_url = spec.schedule_id = ""
    return spec
