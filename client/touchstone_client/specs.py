"""Job specs: made new, or copied from a job whose answers are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import struct_pb2

from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2

MODES = {"generate": suite_pb2.MODE_GENERATE, "loglikelihood": suite_pb2.MODE_LOGLIKELIHOOD}
RERUN = {
    "truncated": item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    "unparsed": item_result_pb2.OUTCOME_UNPARSED,
    "refused": item_result_pb2.OUTCOME_REFUSED,
    "input_truncated": item_result_pb2.OUTCOME_INPUT_TRUNCATED,
    "error": item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
}
"""Words for the outcomes whose items can run again."""
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
}
EXPORT_FORMATS = {
    "csv": results_service_pb2.ExportRequest.FORMAT_CSV,
    "json": results_service_pb2.ExportRequest.FORMAT_JSON,
    "jsonl": results_service_pb2.ExportRequest.FORMAT_JSONL,
    "parquet": results_service_pb2.ExportRequest.FORMAT_PARQUET,
}
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
    stream: bool = False,
    sampling: job_pb2.Sampling | None = None,
    priority: str = "",
    project_id: int = 0,
    time_limit_s: int = 0,
    webhook_url: str = "",
    any_job: bool = False,
) -> job_pb2.JobSpec:
    """A run of one model on one suite. Numbers as in SuiteWork: 0 means all items, no examples, one answer.

    `priority` is a word of PRIORITIES; empty means high. `any_job` takes equal requests' answers from any job.
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
        suite=job_pb2.SuiteWork(suite=suite, tasks=tasks, limit=limit, shots=shots, repeats=repeats, seed=seed),
    )


def sampling_parameters(custom: Mapping[str, Any] | None = None, **parameters: float | None) -> job_pb2.Sampling:
    """Sampling parameters by their names in the protos; None is left out. `custom` is merged into the provider's
    request as it is. Raises ValueError for a value that JSON does not have."""
    message = job_pb2.Sampling()
    for name, value in parameters.items():
        if value is not None:
            setattr(message, name, value)
    if custom:
        extra = struct_pb2.Struct()
        extra.update(custom)
        message.extra.CopyFrom(extra)
    return message


def rescore_spec(source: job_pb2.Job) -> job_pb2.JobSpec:
    """Scores the stored answers of a finished job with the present scorer."""
    return _taking(source, ())


def rerun_spec(
    source: job_pb2.Job,
    outcomes: Iterable[item_result_pb2.Outcome],
    max_tokens: int | None = None,
    context_length: int | None = None,
) -> job_pb2.JobSpec:
    """Asks again for the items of a finished job that ended so, perhaps with other limits; takes its other answers."""
    spec = _taking(source, outcomes)
    if max_tokens is not None:
        spec.sampling.max_tokens = max_tokens
    if context_length is not None:
        spec.sampling.context_length = context_length
    return spec


def _taking(source: job_pb2.Job, outcomes: Iterable[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=outcomes))
    return spec
