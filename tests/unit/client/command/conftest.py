"""Services with jobs, datasets and runs to show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from services.words import rubrics
from tests.unit.client.command.verbs import comparison
from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset, dataset_job, job, metric, result
from tests.unit.words.test_rubrics import CORRECT
from touchstone.v1 import (
    call_pb2,
    dataset_pb2,
    dataset_service_pb2,
    endpoint_pb2,
    item_result_pb2,
    queue_pb2,
    results_service_pb2,
    schedule_pb2,
    scheduler_service_pb2,
    webhook_pb2,
)

Verdict = results_service_pb2.Annotation


@pytest.fixture
def kept(fakes: Fakes) -> Fakes:
    """One dataset, and one job over it with one answer to row "candidate-7"."""
    row = dataset_pb2.DatasetRow(
        custom_id="a", reference='"Paris"', metadata='{"name": "Ada"}', stop=["\n"],
        messages=[dataset_pb2.ChatMessage(role="user", content="Capital of France?")],
    )  # fmt: skip
    row.sampling.max_tokens = 9
    result = item_result_pb2.ItemResult(
        item=6, custom_id="candidate-7", outcome=item_result_pb2.OUTCOME_ANSWERED, response="Lyon?"
    )
    stored = results_service_pb2.StoredItem(job_id=JOB, task="rows", result=result, score=0.25)
    stored.annotation.verdict = Verdict.VERDICT_FIX
    stored.annotation.corrected_answer = "Paris"
    fakes.answers |= {
        "UploadDataset": dataset_service_pb2.UploadDatasetResponse(dataset=dataset()),
        "PreviewDataset": dataset_service_pb2.PreviewDatasetResponse(
            dataset=dataset(format="FORMAT_ALPACA", reading="Parquet, read as Alpaca: prompt from instruction"),
            rows_found=5000,
            first_rows=[row],
            columns=["instruction", "output"],
        ),
        "CreateHubDataset": dataset_service_pb2.CreateHubDatasetResponse(
            dataset=dataset(name="openai/gsm8k/main/test")
        ),
        "GetDataset": dataset_service_pb2.GetDatasetResponse(
            dataset=dataset(template="{{q}}"), live_jobs=2, finished_jobs=3
        ),
        "ListDatasets": dataset_service_pb2.ListDatasetsResponse(datasets=[dataset()], total_size=1),
        "ListDatasetRows": dataset_service_pb2.ListDatasetRowsResponse(rows=[row]),
        "DeleteDataset": dataset_service_pb2.DeleteDatasetResponse(),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(job=dataset_job(request.job_id)),
        "CreateJob": scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER, state="PENDING")),
        "ListItems": lambda request: results_service_pb2.ListItemsResponse(
            items=[stored] if request.conditions.custom_id in ("", "candidate-7", "7") else []
        ),
        "GetItem": results_service_pb2.GetItemResponse(item=stored),
        "AnnotateItem": results_service_pb2.AnnotateItemResponse(item=stored),
        "Export": [results_service_pb2.ExportResponse(data=b"{}\n")],
    }
    return fakes


@pytest.fixture
def pair(fakes: Fakes) -> Fakes:
    """Two endpoints with a model each, and two jobs of which the first ends before the second."""
    endpoints = [endpoint_pb2.Endpoint(endpoint=name, kind="vllm") for name in ("left", "right")]
    models = {"left": "one", "right": "two"}
    ids = {"one": JOB, "two": OTHER}
    running = {model: dataset_job(job_id, model, "RUNNING") for model, job_id in ids.items()}
    queues: Iterator[list[Any]] = itertools.chain([[*running.values()], [running["two"]]], itertools.repeat([]))
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": lambda request: scheduler_service_pb2.ListModelsResponse(
            models=[endpoint_pb2.Model(model=models[request.endpoint])]
        ),
        "CreateJobs": lambda request: scheduler_service_pb2.CreateJobsResponse(
            jobs=[dataset_job(ids[spec.model], spec.model, "PENDING") for spec in request.specs]
        ),
        "GetQueue": lambda request: scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue(running=next(queues))),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one" if request.job_id == JOB else "two")
        ),
        "GetJobResult": lambda request: results_service_pb2.GetJobResultResponse(result=result(request.job_id)),
    }
    return fakes


@pytest.fixture
def told(fakes: Fakes) -> Fakes:
    """Services with one finished job, and an answer to every reading verb."""
    scheduler, results = scheduler_service_pb2, results_service_pb2
    scores = results.JobScores(job_id=JOB, averages=[metric("score", 0.7), metric("accuracy", 0.75)])
    item = item_result_pb2.ItemResult(
        item=3, outcome=item_result_pb2.OUTCOME_ANSWERED, response="Yes.", prediction="yes", statistics={"correct": 1}
    )
    stored = results.StoredItem(task="rte", result=item)
    endpoint = endpoint_pb2.Endpoint(endpoint="local", kind="ollama", state=endpoint_pb2.Endpoint.STATE_REACHABLE)
    entry = results.GetLeaderboardResponse(metrics=["accuracy"], total_models=1, items=20)
    entry.entries.add(rank=1, rank_low=1, rank_high=2, model="m", score=metric(mean=0.8), previous_mean=0.75)
    fakes.answers |= {
        "ListEndpoints": scheduler.ListEndpointsResponse(endpoints=[endpoint]),
        "CreateJobs": scheduler.CreateJobsResponse(jobs=[job(state="PENDING")]),
        "CancelJob": scheduler.CancelJobResponse(job=job(state="CANCELLED")),
        "RetryJob": scheduler.RetryJobResponse(job=job(state="PENDING")),
        "WatchJob": [scheduler.WatchJobResponse(job=job(state=state)) for state in ("RUNNING", "COMPLETED")],
        "Scheduler.GetJob": scheduler.GetJobResponse(job=job()),
        "GetJobResult": results.GetJobResultResponse(result=result()),
        "Results.ListJobs": results.ResultsServiceListJobsResponse(jobs=[job()], scores=[scores], total_size=1),
        "ListItems": results.ListItemsResponse(
            items=[stored], classes=[results.ClassCount(reference="yes", prediction="no", items=2)]
        ),
        "ListRecordedRuns": results.ListRecordedRunsResponse(
            runs=[call_pb2.RecordedRun(name="bot", calls=3, models=["one@local", "two@local"])]
        ),
        "GetItem": results.GetItemResponse(item=stored),
        "ListJudges": results.ListJudgesResponse(
            judges=[results.JudgeRun(job=job(), rubric=rubrics.of_value(CORRECT))]
        ),
        "GetLeaderboard": entry,
        "Compare": comparison(),
        "GetQueue": scheduler.GetQueueResponse(queue=queue_pb2.Queue(running=[job(state="RUNNING")], slots=3)),
        "ListEvaluators": scheduler.ListEvaluatorsResponse(),
        "ListModels": scheduler.ListModelsResponse(models=[endpoint_pb2.Model(model="m", parameters_b=7.2)]),
        "ListSuites": scheduler.ListSuitesResponse(),
        "ListJobLogs": scheduler.ListJobLogsResponse(lines=[scheduler.LogLine(level="error", text="It broke.")]),
        "ListSchedules": scheduler.ListSchedulesResponse(
            schedules=[schedule_pb2.Schedule(schedule_id="s", cron="0 3 * * 1")]
        ),
        "ListWebhooks": scheduler.ListWebhooksResponse(webhooks=[webhook_pb2.Webhook(webhook_id="w", url="http://h/")]),
        "ListDeadDeliveries": scheduler.ListDeadDeliveriesResponse(deliveries=[webhook_pb2.Delivery(delivery_id="d")]),
        "ListConfigurations": results.ListConfigurationsResponse(
            configurations=[results.Configuration(configuration="c")]
        ),
    }
    return fakes
