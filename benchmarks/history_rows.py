"""What a generated history is made of: suites, configurations, and what is serialised of their runs."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from services.evaluator.tasks import mmlu
from services.words import suites
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2

OWNERS, PROJECTS = 12, 20
SUBSET_ITEMS = 1_000
"""Items of a run of every suite but MMLU."""
RUNNING_S = 300


@dataclass(frozen=True, slots=True)
class Suite:
    """`share` of the jobs run it. Tasks have all of `metrics`; a run has `items` of them together."""

    name: str
    tasks: Sequence[str]
    metrics: Sequence[str]
    items: int
    share: float
    configurations: int

    def items_of(self, place: int) -> int:
        return self.items // len(self.tasks) + (place < self.items % len(self.tasks))


_GLUE = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli")
_SUPERGLUE = ("boolq", "cb", "copa", "rte", "wic", "wsc", "multirc", "record")
SUITES = (
    Suite("glue", _GLUE, ("accuracy", "f1"), SUBSET_ITEMS, 0.66, 200),
    Suite("superglue", _SUPERGLUE, ("accuracy", "f1"), SUBSET_ITEMS, 0.15, 100),
    Suite("medical", ("medqa", "medmcqa", "pubmedqa"), ("accuracy", "macro_f1"), SUBSET_ITEMS, 0.15, 100),
    Suite("mmlu", [task.task for task in mmlu.TASKS], ("accuracy",), 14_042, 0.04, 100),
)


def configurations() -> pa.Table:
    rows = []
    number = 0
    for suite in SUITES:
        for place in range(suite.configurations):
            job = job_of(suite, number, place)
            rows.append(
                {
                    "number": number,
                    "suite": suite.name,
                    "configuration": job.receipt.configuration,
                    "item_set": job.item_set,
                    "subset": job.subset,
                    "owner": job.owner,
                    "project_id": job.spec.project_id,
                    "model": job.spec.model,
                    "endpoint": job.spec.endpoint,
                    "baseline": job.baseline,
                    "quality": random.Random(number).random(),
                    "job": job.SerializeToString(),
                    "result": _result(suite, job).SerializeToString(),
                }
            )
            number += 1
    return pa.Table.from_pylist(rows)


def job_of(suite: Suite, number: int, place: int) -> job_pb2.Job:
    """What all runs of a configuration have in common."""
    digest = uuid.uuid5(uuid.NAMESPACE_OID, f"configuration {number}").hex
    plans = []
    for task_place, task in enumerate(suite.tasks):
        count = suite.items_of(task_place)
        plans.append(
            job_pb2.TaskPlan(
                task=task,
                title=task.replace("_", " "),
                version="1",
                scorer_version="1",
                items=count,
                published_items=count if suite.name == "mmlu" else 10 * count,
                data=suite_pb2.DataSource(
                    dataset=f"published/{suite.name}", config=task, split="validation", revision=40 * "a"
                ),
                item_set=uuid.uuid5(uuid.NAMESPACE_OID, task).hex,
                metrics=[suite_pb2.MetricSpec(metric=metric) for metric in suite.metrics],
                unit_size=16,
                prompt_hash=uuid.uuid5(uuid.NAMESPACE_OID, f"prompt {task}").hex,
                repeats=1,
                weighting=suites.ITEMS if suite.name == "mmlu" else suites.TASKS,
            )
        )
    progress = job_pb2.Progress(
        items_total=suite.items, items_done=suite.items, elapsed_s=RUNNING_S, time_limit_s=10_800
    )
    progress.rate_history.extend(random.Random(number).random() * 60 for _ in range(10))
    progress.tasks.extend(
        job_pb2.TaskProgress(task=plan.task, items_total=plan.items, items_done=plan.items) for plan in plans
    )
    return job_pb2.Job(
        owner=f"user-{number % OWNERS}",
        spec=job_pb2.JobSpec(
            endpoint=f"endpoint-{number % 7}",
            model=f"family-{place % 20}/model-{place}",
            project_id=1 + number % PROJECTS,
            suite=job_pb2.SuiteWork(suite=suite.name),
        ),
        attempt=1,
        plan=plans,
        item_set=uuid.uuid5(uuid.NAMESPACE_OID, suite.name).hex,
        subset=suite.name != "mmlu",
        progress=progress,
        receipt=job_pb2.Receipt(
            endpoint_kind="openai",
            server="vllm 0.12.0",
            model_digest=f"sha256:{digest}{digest}",
            software="1.0.0",
            concurrency=64,
            configuration=digest,
            parameters='{"max_tokens":32,"temperature":0}',
            template="endpoint",
        ),
        baseline=place >= suite.configurations - 2,
    )


def _result(suite: Suite, job: job_pb2.Job) -> metric_pb2.JobResult:
    chance = random.Random(job.receipt.configuration)

    def metric(name: str, n: int) -> metric_pb2.Metric:
        value = chance.random()
        return metric_pb2.Metric(
            metric=name,
            mean=value,
            stderr=0.01,
            ci95_low=value - 0.02,
            ci95_high=value + 0.02,
            n=n,
            method="wilson",
            bound_low=value,
            bound_high=value,
        )

    return metric_pb2.JobResult(
        tasks=[
            metric_pb2.TaskResult(
                task=plan.task,
                title=plan.title,
                metrics=[metric(name, plan.items) for name in suite.metrics],
                items=plan.items,
                items_planned=plan.items,
                outcomes=metric_pb2.OutcomeCounts(answered=plan.items),
                correct=plan.items // 2,
                majority_share=0.5,
            )
            for plan in job.plan
        ],
        suite_score=metric("score", suite.items),
        outcomes=metric_pb2.OutcomeCounts(answered=suite.items),
        sealed=True,
        input_tokens=180 * suite.items,
        output_tokens=3 * suite.items,
        latency_p50_ms=300,
        latency_p95_ms=900,
        score_rule=f"Mean over {len(suite.tasks)} tasks of the mean of each task's metrics.",
    )


def minutes(start: datetime, end: datetime) -> pa.Table:
    """The serialised times of a job that was created at the beginning of a minute."""
    count = int((end - start).total_seconds()) // 60
    times = []
    for minute in range(count):
        job = job_pb2.Job()
        created = start.replace(second=0, microsecond=0) + timedelta(minutes=minute)
        job.created_at.FromDatetime(created)
        job.started_at.FromDatetime(created + timedelta(seconds=1))
        job.finished_at.FromDatetime(created + timedelta(seconds=RUNNING_S))
        times.append(job.SerializeToString())
    return pa.table({"minute": pa.array(range(count), pa.int64()), "times": pa.array(times, pa.binary())})


def task_metrics() -> pa.Table:
    """The rows of `metrics` that a run of each suite has; averages over tasks have no task. Rows with one `drawn` have
    one value."""
    rows = []
    for suite in SUITES:
        for task_place, task in enumerate(suite.tasks):
            for place, metric in enumerate(suite.metrics):
                rows.append((suite.name, task, metric, place, 1, suite.items_of(task_place), metric))
        own = suites.of_plans(job_of(suite, 0, 0).plan)
        averages = [
            (rule, metric)
            for rule in (suites.UNSPECIFIED, suites.ITEMS, suites.TASKS)
            for metric in ("score", *suite.metrics)
        ]
        for place, (rule, metric) in enumerate(averages):
            name = suites.average_name(metric, rule)
            # By the suite's own rule, it is the same figure under both names.
            drawn = metric if rule == own else name
            rows.append((suite.name, "", name, place, len(suite.tasks), suite.items, drawn))
    columns = ("suite", "task", "metric", "place", "tasks", "n_items", "drawn")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])
