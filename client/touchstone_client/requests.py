"""Requests that are more work to build. Both clients send the same ones."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypedDict

from services.words.enums import (
    EXPORT_FORMATS,
    EXPORT_KINDS,
    ITEM_FILTERS,
    ITEM_ORDERS,
    MODES,
    PREFERENCES,
    VERDICTS,
    WEIGHTINGS,
)
from touchstone.v1 import (
    comparison_pb2,
    dataset_pb2,
    dataset_service_pb2,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_pb2,
)
from touchstone_client.specs import SIDE_BY_SIDE_FILTERS
from touchstone_client.uploading import DatasetOptions, options_of

LIST_PAGE = 100
"""Rows per request: more could exceed a message of 4 MB."""
COMPARE_S = 60.0
EXPORT_S = IMPORT_S = UPLOAD_S = HUB_S = 3600.0
SIDE_BY_SIDE_S = 60.0
JUDGE_S = RATE_S = 60.0
EXPERIMENT_S = 120.0
CLOSE_S = 600.0
"""Deadlines of calls that may take longer than others."""


_OPEN = (None, None)


class JobFilters(TypedDict, total=False):
    """Which jobs; a missing field means any. `created_after` is aware of its time zone."""

    model: str
    model_query: str
    suite: str
    endpoint: str
    states: Iterable[job_pb2.Job.State]
    owner: str
    project_id: int
    created_after: datetime


class ItemFilters(TypedDict, total=False):
    """Which items of a job; `filter` is a word of `services.words.enums.ITEM_FILTERS`. `length` is in characters of the
    response, `score` what the item counts; both ends are included, and None means no bound. `verdicts` are words of
    `services.words.enums.VERDICTS`. `reference` and `prediction` are exact; an empty prediction means that nothing was
    read."""

    task: str
    filter: str
    query: str
    baseline_job_id: str
    custom_id: str
    reference: str
    prediction: str
    metadata_field: str
    metadata_value: str
    length: tuple[int | None, int | None]
    score: tuple[float | None, float | None]
    verdicts: Iterable[str]


class RunFilters(TypedDict, total=False):
    """What an experiment asked; a missing field means all. `judge_pending`: only answers without a score."""

    job_id: str
    prompt: str
    judge_pending: bool


class ScoredJob(NamedTuple):
    """A job with its averages over tasks, empty until it is sealed."""

    job: job_pb2.Job
    scores: results_service_pb2.JobScores


class Comparison(TypedDict, total=False):
    """How runs are compared; fields as in CompareRequest, `mode` and `weighting` are words of `MODES` and `WEIGHTINGS`
    in `services.words.enums`."""

    suite: str
    mode: str
    metrics: Iterable[str]
    baseline: str
    margin: float
    alpha: float
    seed: int
    project_id: int
    weighting: str


class Export(TypedDict, total=False):
    """The content of an exported file. `job_id` is for items, and for one job's metrics; `jobs` is for jobs and
    metrics."""

    job_id: str
    jobs: JobFilters
    items: ItemFilters


def create_job(spec: job_pb2.JobSpec, request_id: str) -> scheduler_service_pb2.CreateJobRequest:
    return scheduler_service_pb2.CreateJobRequest(request_id=request_id or uuid.uuid4().hex, spec=spec)


def create_jobs(specs: Iterable[job_pb2.JobSpec], request_id: str) -> scheduler_service_pb2.CreateJobsRequest:
    return scheduler_service_pb2.CreateJobsRequest(request_id=request_id or uuid.uuid4().hex, specs=specs)


def run_experiment(
    definition: Mapping[str, Any] | str, judges: Iterable[job_pb2.Judge], check_only: bool, request_id: str
) -> scheduler_service_pb2.RunExperimentRequest:
    """Raises TypeError and ValueError for a definition that has no JSON."""
    text = definition if isinstance(definition, str) else json.dumps(definition, ensure_ascii=False, allow_nan=False)
    return scheduler_service_pb2.RunExperimentRequest(
        request_id=request_id or uuid.uuid4().hex, definition=text, judges=judges, check_only=check_only
    )


def start_decision(
    baseline: job_pb2.JobSpec,
    candidate: job_pb2.JobSpec,
    further: Iterable[job_pb2.JobSpec],
    error: float,
    margin: float,
    seed: int,
    request_id: str,
) -> scheduler_service_pb2.StartDecisionRequest:
    return scheduler_service_pb2.StartDecisionRequest(
        request_id=request_id or uuid.uuid4().hex,
        baseline=baseline,
        candidate=candidate,
        further_candidates=further,
        error=error,
        margin=margin,
        seed=seed,
    )


def experiment_runs(name: str, filters: RunFilters) -> results_service_pb2.ListExperimentRunsRequest:
    return results_service_pb2.ListExperimentRunsRequest(
        name=name,
        job_id=filters.get("job_id", ""),
        prompt=filters.get("prompt", ""),
        judge_pending=filters.get("judge_pending", False),
        page_size=500,
    )


def create_schedule(
    cron: str, spec: job_pb2.JobSpec, time_zone: str, label: str, request_id: str
) -> scheduler_service_pb2.CreateScheduleRequest:
    return scheduler_service_pb2.CreateScheduleRequest(
        request_id=request_id or uuid.uuid4().hex, cron=cron, time_zone=time_zone, spec=spec, label=label
    )


def schedule_decision(
    cron: str, decision: scheduler_service_pb2.StartDecisionRequest, time_zone: str, label: str, request_id: str
) -> scheduler_service_pb2.CreateScheduleRequest:
    decision.request_id = ""
    return scheduler_service_pb2.CreateScheduleRequest(
        request_id=request_id or uuid.uuid4().hex, cron=cron, time_zone=time_zone, decision=decision, label=label
    )


def start_watch(
    reference: str,
    cron: str,
    again: str,
    endpoint: str,
    model: str,
    time_zone: str,
    label: str,
    items: int,
    error: float,
    seed: int,
    request_id: str,
) -> scheduler_service_pb2.StartWatchRequest:
    return scheduler_service_pb2.StartWatchRequest(
        request_id=request_id or uuid.uuid4().hex,
        reference_job_id=reference,
        again_job_id=again,
        endpoint=endpoint,
        model=model,
        cron=cron,
        time_zone=time_zone,
        label=label,
        items=items,
        error=error,
        seed=seed,
    )


def list_jobs(
    filters: JobFilters, page_size: int = LIST_PAGE, with_scores: bool = False
) -> results_service_pb2.ResultsServiceListJobsRequest:
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=page_size,
        model=filters.get("model", ""),
        model_query=filters.get("model_query", ""),
        suite=filters.get("suite", ""),
        endpoint=filters.get("endpoint", ""),
        states=filters.get("states", ()),
        owner=filters.get("owner", ""),
        project_id=filters.get("project_id", 0),
        with_scores=with_scores,
    )
    if "created_after" in filters:
        request.created_after.FromDatetime(filters["created_after"])
    return request


def recent(days: int, filters: JobFilters) -> JobFilters:
    """The filters, for jobs of the last `days` days; 0 means any time."""
    return {"created_after": datetime.now(UTC) - timedelta(days=days), **filters} if days else filters


def list_items(
    job_id: str, filters: ItemFilters, page_size: int = LIST_PAGE, order: str = "item"
) -> results_service_pb2.ListItemsRequest:
    return results_service_pb2.ListItemsRequest(
        job_id=job_id,
        task=filters.get("task", ""),
        filter=ITEM_FILTERS[filters.get("filter", "all")],
        query=filters.get("query", ""),
        baseline_job_id=filters.get("baseline_job_id", ""),
        page_size=page_size,
        conditions=_conditions(filters),
        order=ITEM_ORDERS[order],
    )


def _conditions(filters: ItemFilters) -> results_service_pb2.ItemConditions | None:
    (length_low, length_high), (score_low, score_high) = filters.get("length", _OPEN), filters.get("score", _OPEN)
    made = results_service_pb2.ItemConditions(
        metadata_field=filters.get("metadata_field", ""),
        metadata_value=filters.get("metadata_value", ""),
        length_low=length_low,
        length_high=length_high,
        score_low=score_low,
        score_high=score_high,
        verdicts=[VERDICTS[word] for word in filters.get("verdicts", ())],
        custom_id=filters.get("custom_id", ""),
        reference=filters.get("reference"),
        prediction=filters.get("prediction"),
    )
    return made if made.ListFields() else None


def side_by_side(
    job_ids: Iterable[str], only_job_id: str, diffs: bool, page_size: int, filters: ItemFilters
) -> results_service_pb2.ListSideBySideRequest:
    return results_service_pb2.ListSideBySideRequest(
        job_ids=job_ids,
        task=filters.get("task", ""),
        filter=SIDE_BY_SIDE_FILTERS[filters.get("filter", "all")],
        only_job_id=only_job_id,
        query=filters.get("query", ""),
        conditions=_conditions(filters),
        page_size=page_size,
        with_diffs=diffs,
    )


def annotate(
    job_id: str, task: str, item: int, verdict: str, repeat: int, corrected_answer: str, note: str
) -> results_service_pb2.AnnotateItemRequest:
    return results_service_pb2.AnnotateItemRequest(
        job_id=job_id,
        task=task,
        item=item,
        repeat=repeat,
        verdict=VERDICTS[verdict],
        corrected_answer=corrected_answer,
        note=note,
    )


def prefer(
    job_ids: Iterable[str], task: str, item: int, choice: str, preferred_job_id: str, repeat: int, blind: bool
) -> results_service_pb2.JudgeRowRequest:
    return results_service_pb2.JudgeRowRequest(
        job_ids=job_ids,
        task=task,
        item=item,
        repeat=repeat,
        choice=PREFERENCES[choice],
        preferred_job_id=preferred_job_id,
        blind=blind,
    )


def create_hub_dataset(
    source: suite_pb2.DataSource, options: DatasetOptions, limit: int, request_id: str
) -> dataset_service_pb2.CreateHubDatasetRequest:
    made = options_of(options)
    made.name, made.format = options.get("name", ""), dataset_pb2.Dataset.FORMAT_HUB
    return dataset_service_pb2.CreateHubDatasetRequest(options=made, source=source, limit=limit, request_id=request_id)


def compare(subjects: Iterable[str], how: Comparison) -> comparison_pb2.CompareRequest:
    mode, weighting = how.get("mode", ""), how.get("weighting", "")
    return comparison_pb2.CompareRequest(
        subjects=subjects,
        suite=how.get("suite", ""),
        mode=MODES[mode] if mode else None,
        metrics=how.get("metrics", ()),
        baseline=how.get("baseline", ""),
        margin=how.get("margin", 0.0),
        alpha=how.get("alpha", 0.0),
        seed=how.get("seed", 0),
        project_id=how.get("project_id", 0),
        weighting=WEIGHTINGS[weighting] if weighting else None,
    )


def export(kind: str, format: str, what: Export) -> results_service_pb2.ExportRequest:
    request = results_service_pb2.ExportRequest(kind=EXPORT_KINDS[kind], format=EXPORT_FORMATS[format])
    if job_id := what.get("job_id", ""):
        # A job's metrics allow only the job, not even a page's size.
        request.items.CopyFrom(list_items(job_id, what.get("items", {}), page_size=0))
    else:
        request.jobs.CopyFrom(list_jobs(what.get("jobs", {}), page_size=0))
    return request
