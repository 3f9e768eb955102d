"""Rows of an uploaded dataset through every process: found, judged, exported, and computed again from the files."""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.recompute import Answers
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Endpoint, Stack, running, until
from tests.stub_thread import stub_thread
from tests.unit.results.exported import exported_item
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)
from touchstone.v1.suite_pb2 import MetricSpec

pytestmark = pytest.mark.stack

MODEL = "small"
ROWS = 120
FAILS = 77
"""The stub refuses to answer this row for good."""


def answer(prompt: str) -> str | Fault:
    number = int(prompt.rsplit(" ", 1)[1])
    if number == FAILS:
        return Fault("400", message="This prompt is not allowed.")
    return f"=answer {number}" if number % 3 else "answer else"


def lines(rows: int, references: bool) -> bytes:
    """Every second row has a reference, if any; the stub is right in two of three."""
    made = []
    for i in range(rows):
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": f"question {i}"}]
        line: dict[str, Any] = {
            "custom_id": f"candidate-{i}",
            "messages": messages,
            "metadata": {"name": f"Ünal {i}", "team": "red" if i % 5 else "blue"},
        }
        if references and i % 2 == 0:
            line["reference"] = f"=answer {i}"
        made.append(json.dumps(line, ensure_ascii=bool(i % 2)))
    return "\n".join(made).encode()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stub_thread() as stubs:
        stub = stubs.start(OpenAIServer(Behaviour(models=(MODEL,), answer=answer)))
        endpoints: list[Endpoint] = [{"name": "local", "kind": "openai", "base_url": stub.url, "concurrency": 8}]
        with running(Stack(tmp_path_factory.mktemp("datasets"), endpoints), request) as started:
            yield started


def upload(stack: Stack, references: bool) -> str:
    stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
    options = dataset_pb2.DatasetOptions(name="batch.jsonl", scoring=scoring_pb2.Scoring(scorer="token_f1"))
    data = lines(ROWS if references else FAILS, references)
    requests = iter([dataset_service_pb2.UploadDatasetRequest(options=options, data=data)])
    return str(stub.UploadDataset(requests, timeout=30).dataset.dataset_id)


def run(stack: Stack, dataset_id: str) -> job_pb2.Job:
    spec = job_pb2.JobSpec(endpoint="local", model=MODEL, dataset=job_pb2.DatasetWork(dataset_id=dataset_id))
    return done(stack, spec)


def done(stack: Stack, spec: job_pb2.JobSpec) -> job_pb2.Job:
    request = scheduler_service_pb2.CreateJobRequest(spec=spec, request_id=str(uuid.uuid4()))
    made = stack.wait(stack.scheduler.CreateJob(request, timeout=10).job.job_id)
    # The results service hears of the end a moment after the scheduler tells it.
    heard = results_service_pb2.ResultsServiceGetJobRequest(job_id=made.job_id)
    until(lambda: stack.results.GetJob(heard, timeout=10).job.state == made.state)
    return made


@pytest.fixture(scope="module")
def job(stack: Stack) -> job_pb2.Job:
    return run(stack, upload(stack, references=True))


def result(stack: Stack, job: job_pb2.Job) -> metric_pb2.JobResult:
    return stack.results.GetJobResult(results_service_pb2.GetJobResultRequest(job_id=job.job_id), timeout=10).result


def exported(stack: Stack, job_id: str, **query: str) -> str:
    with stack.client() as client:
        found = client.get(f"/results/{job_id}/export", params=query)
    assert found.status_code == 200, found.text
    return found.text


def test_every_row_is_there_once_with_its_metadata_and_messages(stack: Stack, job: job_pb2.Job) -> None:
    items = stack.items(job.job_id)
    assert [one.result.custom_id for one in items] == [f"candidate-{i}" for i in range(ROWS)]
    for number, one in enumerate(items):
        assert json.loads(one.result.metadata)["name"] == f"Ünal {number}"
        assert [message["role"] for message in json.loads(one.result.messages)] == ["system", "user"]
        assert one.HasField("score") == (number % 2 == 0 and number != FAILS)


def test_metrics_are_those_of_the_rows_with_a_reference(stack: Stack, job: job_pb2.Job) -> None:
    found = [json.loads(line) for line in exported(stack, job.job_id, kind="items", format="jsonl").splitlines()]
    answers = Answers([exported_item(one) for one in found if one["outcome"] != "infrastructure_error"])
    (task,) = result(stack, job).tasks
    (metric,) = task.metrics
    spec = MetricSpec(metric="token_f1", rule=MetricSpec.RULE_MEAN, statistic="token_f1")
    assert (metric.metric, metric.n, task.items) == ("token_f1", ROWS // 2, ROWS)
    assert metric.mean == pytest.approx(answers.of(spec), abs=1e-9)
    assert (metric.ci95_low, metric.ci95_high) == pytest.approx(answers.student(spec))
    assert answers.unscored == ROWS // 2 - 1


def test_rows_are_found_judged_and_exported(stack: Stack, job: job_pb2.Job) -> None:
    path = f"/results/{job.job_id}/items"
    blue = stack.get(path, metadata_field="team", metadata_value="BLUE", filter="final")
    assert blue["total"] == ROWS / 5
    assert stack.get(path, query="ünal 77")["items"][0]["custom_id"] == "candidate-77"
    with stack.client() as client:
        for item, body in ((1, {"verdict": "golden"}), (3, {"verdict": "fix", "corrected_answer": "better"})):
            judged = client.put(f"{path}/rows/{item}/annotation", json=body)
            assert judged.status_code == 200, judged.text
        refused = client.put(f"{path}/rows/{FAILS}/annotation", json={"verdict": "wrong"})
    assert refused.status_code == 409
    assert [one["item"] for one in stack.get(path, verdict="golden")["items"]] == [1]
    examples = [json.loads(line)["messages"] for line in exported(stack, job.job_id, kind="golden").splitlines()]
    assert [[message["content"] for message in one] for one in examples] == [
        ["be brief", "question 1", "=answer 1"],
        ["be brief", "question 3", "better"],
    ]


def test_batch_output_has_every_row_and_no_formula(stack: Stack, job: job_pb2.Job) -> None:
    found = [json.loads(line) for line in exported(stack, job.job_id, kind="batch").splitlines()]
    assert [one["custom_id"] for one in found] == [f"candidate-{i}" for i in range(ROWS)]
    failed = [one["custom_id"] for one in found if one["error"] is not None]
    assert failed == [f"candidate-{FAILS}"]
    assert found[0]["response"]["body"]["choices"][0]["message"]["content"] == "answer else"
    table = list(csv.DictReader(io.StringIO(exported(stack, job.job_id, kind="batch", format="csv"), newline="")))
    assert (table[1]["response"], table[1]["metadata.name"]) == ("'=answer 1", "Ünal 1")


def test_further_scorers_of_a_rescore_are_reported_and_do_not_rank(stack: Stack, job: job_pb2.Job) -> None:
    further = [{"scorer": "exact_match"}, {"scorer": "contains"}]
    benchmark = f"bm_{job.job_id.replace('-', '')}"
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as client:
        posted = client.post(f"/admin/benchmarks/{benchmark}/rescore", json={"further_scorers": further})
        twice = client.post(f"/admin/benchmarks/{benchmark}/rescore", json={"further_scorers": further[:1] * 2})
    assert posted.status_code == 200, posted.text
    assert (twice.status_code, twice.json()["detail"]) == (
        400,
        "Two scorers are the same: exact match. Give each scorer once.",
    )
    again = stack.wait(posted.json()["job_id"])
    until(lambda: result(stack, again).sealed)
    (one,), (several,) = result(stack, job).tasks, result(stack, again).tasks
    scores = [result(stack, run).suite_score for run in (job, again)]
    for first, other in (scores, (one.metrics[0], several.metrics[0])):
        assert (other.metric, other.n, other.mean) == (first.metric, first.n, first.mean)
        # Sums of the database have no fixed order.
        assert (other.ci95_low, other.ci95_high) == pytest.approx((first.ci95_low, first.ci95_high), abs=1e-12)
    right = (ROWS // 2) * 2 // 3
    assert [(metric.metric, metric.mean, metric.beside) for metric in several.metrics[1:]] == [
        ("exact_match.exact_match", right / (ROWS // 2), True),
        ("contains.contains", right / (ROWS // 2), True),
    ]
    assert (again.item_set != job.item_set, again.receipt.source_job) == (True, job.job_id)
    found = [json.loads(line) for line in exported(stack, again.job_id, kind="items", format="jsonl").splitlines()]
    scored = [one["statistics"] for one in found if one["item"] in (0, 1, 2)]
    assert [set(one or {}) - {"token_f1"} for one in scored] == [
        {"exact_match.correct", "contains.correct"},
        set(),
        {"exact_match.correct", "contains.correct"},
    ]
    metrics = list(csv.DictReader(io.StringIO(exported(stack, again.job_id, kind="metrics", format="csv"), newline="")))
    assert {"token_f1", "exact_match.exact_match", "contains.contains"} <= {line["metric"] for line in metrics}
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as client:
        page = client.get(f"/jobs/{again.job_id}").text
        beside = client.get("/side-by-side", params={"jobs": f"{job.job_id},{again.job_id}"}).text
    assert "Also scored by" in page
    for words in ("exact match", "contains"):
        assert f'<td colspan="3">{words}</td>' in page
        assert f"<small>{words} 66.7 (" in beside


def test_without_any_reference_a_run_is_read_and_not_ranked(stack: Stack) -> None:
    job = run(stack, upload(stack, references=False))
    assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
    found = result(stack, job)
    assert not found.tasks[0].metrics
    assert (found.sealed, found.not_ranked_reason) == (True, "no row has a reference")
    board = stack.get("/leaderboard", suite=job.spec.dataset.dataset_id, metric="score")
    assert [(one["reason"], one["score"]) for one in board["not_ranked"]] == [("no row has a reference", None)]
    assert not any(one.HasField("score") for one in stack.items(job.job_id))
