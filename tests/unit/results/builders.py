"""Jobs, item results and events for tests, with only what differs spelled out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.database import Connection
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2

START = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
ANSWERED, UNPARSED, CUT, ERROR = (
    item_result_pb2.OUTCOME_ANSWERED,
    item_result_pb2.OUTCOME_UNPARSED,
    item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
)


def plan(task: str, items: int, *metrics: str, group: str = "", positive: str = "yes") -> job_pb2.TaskPlan:
    specs = [suite_pb2.MetricSpec(metric=m, positive_label=positive if m == "f1" else "") for m in metrics]
    return job_pb2.TaskPlan(
        task=task,
        title=task.upper(),
        items=items,
        published_items=items,
        metrics=specs or [suite_pb2.MetricSpec(metric="accuracy")],
        score_group=group,
        unit_size=10,
    )


def job(
    job_id: str,
    *plans: job_pb2.TaskPlan,
    suite: str = "glue",
    model: str = "m1",
    endpoint: str = "local",
    configuration: str = "",
    item_set: str = "set-1",
    subset: bool = False,
    baseline: bool = False,
    state: int = job_pb2.Job.STATE_RUNNING,
    attempt: int = 1,
    minute: int = 0,
    owner: str = "ann",
    project_id: int = 1,
) -> job_pb2.Job:
    created = START + timedelta(minutes=minute)
    return job_pb2.Job(
        job_id=job_id,
        owner=owner,
        spec=job_pb2.JobSpec(
            endpoint=endpoint,
            model=model,
            project_id=project_id,
            suite=job_pb2.SuiteWork(suite=suite),
        ),
        state=job_pb2.Job.State.Name(state),
        attempt=attempt,
        created_at=created,
        started_at=created + timedelta(seconds=1),
        progress=job_pb2.Progress(elapsed_s=30),
        plan=plans,
        item_set=item_set,
        subset=subset,
        baseline=baseline,
        receipt=job_pb2.Receipt(configuration=configuration or f"{model}@{endpoint}", endpoint_kind="openai"),
    )


def answer(
    item: int, prediction: str = "yes", reference: str = "yes", outcome: int = ANSWERED, **fields: object
) -> item_result_pb2.ItemResult:
    usual = {"position": item, "response": f"answer: {prediction}", "prompt": f"question {item}"}
    result = item_result_pb2.ItemResult(
        item=item,
        outcome=item_result_pb2.Outcome.Name(outcome),
        prediction=prediction if outcome == ANSWERED else "",
        reference=reference,
        latency_ms=10.0 + item,
        input_tokens=20,
        output_tokens=3,
        calls=1,
        **(usual | fields),  # type: ignore[arg-type]
    )
    if outcome != ERROR and "statistics" not in fields:
        result.statistics["correct"] = float(outcome == ANSWERED and prediction == reference)
    return result


def batch(
    job_id: str, task: str, items: Sequence[item_result_pb2.ItemResult], attempt: int = 1, unit: int = 0
) -> item_result_pb2.ItemResultBatch:
    return item_result_pb2.ItemResultBatch(
        job_id=job_id, attempt=attempt, unit=unit, task=task, items=items, evaluator="e1"
    )


def event(event_id: str, job: job_pb2.Job, action: str = "running") -> job_pb2.JobEvent:
    return job_pb2.JobEvent(event_id=event_id, occurred_at=START, actor="ann", action=action, job=job)


def known(connection: Connection, *plans: job_pb2.TaskPlan, state: int = job_pb2.Job.STATE_RUNNING) -> job_pb2.Job:
    """Job "j", as its event tells."""
    made = job("j", *plans, state=state)
    writes.store_events(connection, [event(f"{state:04d}", made)])
    return made


def seal(connection: Connection, job: job_pb2.Job, minute: int = 0) -> results_service_pb2.SealJobResponse:
    """Seals as the service does."""
    computed = job_result.compute(connection, job, seal=True)
    connection.begin()
    response = writes.store_seal(connection, job, computed, START + timedelta(minutes=minute, seconds=30))
    connection.commit()
    return response


def run(
    connection: Connection,
    job: job_pb2.Job,
    right: int,
    wrong: int = 0,
    *,
    unparsed: int = 0,
    cut: int = 0,
    minute: int = 0,
) -> results_service_pb2.SealJobResponse:
    """A whole run: every planned task gets the same items, is sealed and completed."""
    outcomes = (
        [("yes", ANSWERED)] * right + [("no", ANSWERED)] * wrong + [("", UNPARSED)] * unparsed + [("", CUT)] * cut
    )
    results = [answer(i, p, outcome=o) for i, (p, o) in enumerate(outcomes)]
    writes.store_items(connection, [batch(job.job_id, task.task, results) for task in job.plan])
    response = seal(connection, job, minute)
    done = job_pb2.Job()
    done.CopyFrom(job)
    done.state = job_pb2.Job.STATE_COMPLETED
    done.finished_at.FromDatetime(START + timedelta(minutes=minute, seconds=31))
    writes.store_events(connection, [event(f"{minute:06d}-{job.job_id}", done, "completed")])
    return response


def endpoint_suite(suite: str, *metrics: str) -> suite_pb2.Suite:
    """A suite as an evaluator announces it."""
    specs = [suite_pb2.MetricSpec(metric=metric) for metric in metrics]
    return suite_pb2.Suite(suite=suite, tasks=[suite_pb2.TaskInfo(task="t", metrics=specs)])
