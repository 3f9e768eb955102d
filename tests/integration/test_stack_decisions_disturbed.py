"""Decisions that somebody or something disturbs, other than by killing processes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.integration.test_stack_backups import touchstone as operate
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Fault
from tests.stack import Stack, running, until
from tests.stack_decisions import ended, started
from tests.stub_thread import stub_thread
from touchstone.v1 import (
    comparison_pb2,
    dataset_pb2,
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)

pytestmark = pytest.mark.stack

COMPLETED, CANCELLED, FAILED = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_FAILED
ROWS, PASSAGE = 400, 8


def answers(prompt: str) -> str | Fault:
    """To rows with an even number the right one."""
    row = int(prompt.split()[-1])
    return "something else" if row % 2 else f"answer {row}"


class Knows(OpenAIServer):
    """`all` knows every answer, the others half of them."""

    def answer(self, body: dict[str, object], text: str) -> dict[str, object]:
        row = self.prompt(body).split()[-1]
        return super().answer(body, f"answer {row}" if body["model"] == "all" else text)


@pytest.fixture(scope="module")
def server() -> Iterator[Knows]:
    with stub_thread() as stubs:
        yield stubs.start(Knows(Behaviour(answers, models=("half", "all"), latency_s=0.02)))


@pytest.fixture(scope="module")
def stack(server: Knows, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    endpoint = {"name": "stub", "kind": "openai", "base_url": server.url, "concurrency": 8}
    priced = endpoint | {"name": "priced", "prices": {"input": 100, "output": 100}}
    with running(Stack(tmp_path_factory.mktemp("disturbed"), [endpoint, priced]), request) as started:
        started.know_models("stub", "priced")
        yield started


def upload(stack: Stack, rows: int, group_field: str = "") -> str:
    """With passages of eight rows, which stand far apart in the file."""
    lines = [
        json.dumps({"prompt": f"Say {row}", "reference": f"answer {row}", "passage": row % (rows // PASSAGE or 1)})
        for row in range(rows)
    ]
    scoring = scoring_pb2.Scoring(scorer="exact_match", group_field=group_field)
    stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
    options = dataset_pb2.DatasetOptions(name="rows.jsonl", scoring=scoring)
    requests = iter([dataset_service_pb2.UploadDatasetRequest(options=options, data="\n".join(lines).encode())])
    return str(stub.UploadDataset(requests, timeout=120).dataset.dataset_id)


def spec(dataset: str, model: str, endpoint: str = "stub", **fields: float) -> job_pb2.JobSpec:
    return job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        dataset=job_pb2.DatasetWork(dataset_id=dataset),
        **fields,  # type: ignore[arg-type]
    )


def test_a_dataset_of_one_row_shows_nothing(stack: Stack) -> None:
    dataset = upload(stack, 1)
    found = ended(stack, started(stack, spec(dataset, "half"), spec(dataset, "all")))
    assert found.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE
    assert {found.baseline.state, found.candidate.state} == {COMPLETED}
    assert (found.pairs, found.decided_at, found.saved.items) == (1, 1, 0)


def test_a_model_does_not_differ_from_itself(stack: Stack) -> None:
    dataset = upload(stack, ROWS)
    found = ended(stack, started(stack, spec(dataset, "half"), spec(dataset, "half")))
    assert found.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE
    assert found.difference == 0
    assert found.decided_at < ROWS // 2


def test_rows_of_one_group_count_as_one_in_decisions_and_in_full_runs(stack: Stack) -> None:
    dataset = upload(stack, ROWS, "passage")
    found = ended(stack, started(stack, spec(dataset, "half"), spec(dataset, "all"), seed=4))
    assert found.verdict == job_pb2.DECISION_VERDICT_BETTER
    assert found.decided_at % PASSAGE == 0, "at the end of a passage"
    assert PASSAGE < found.decided_at < ROWS
    clusters = list(found.baseline.plan[0].clusters)
    assert (len(clusters), len(set(clusters))) == (ROWS, ROWS // PASSAGE)
    jobs = [found.baseline.job_id, found.candidate.job_id]
    for job_id in jobs:
        # A retry asks the rest: then both are full runs.
        stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=job_id), timeout=30)
        stack.completed(job_id)
    result = stack.results.GetJobResult(results_service_pb2.GetJobResultRequest(job_id=jobs[0]), timeout=30).result
    metric = result.tasks[0].metrics[0]
    assert (metric.method, metric.n, metric.mean) == ("clustered", ROWS, 0.5)
    compared = stack.results.Compare(comparison_pb2.CompareRequest(subjects=jobs), timeout=30)
    assert {one.test for one in compared.differences if one.task} == {"clustered permutation"}


def test_a_provider_that_is_away_for_a_while_changes_no_verdict(stack: Stack, server: Knows) -> None:
    dataset = upload(stack, ROWS)
    undisturbed = ended(stack, started(stack, spec(dataset, "half"), spec(dataset, "all"), seed=4))
    made = started(stack, spec(dataset, "half"), spec(dataset, "all"), seed=4)
    until(lambda: stack.job(made.decision_id).progress.items_done > 0)
    server.behaviour.always = Fault("503")
    time.sleep(1)
    server.behaviour.always = None
    found = ended(stack, made)
    assert (found.verdict, found.decided_at, found.failed) == (undisturbed.verdict, undisturbed.decided_at, 0)
    assert found.verdict == job_pb2.DECISION_VERDICT_BETTER


def test_a_budget_that_runs_out_ends_both_jobs(stack: Stack) -> None:
    dataset = upload(stack, ROWS)
    limited = spec(dataset, "half", "priced", budget_usd=0.01)
    limited.sampling.max_tokens = 2
    made = started(stack, spec(dataset, "half"), limited)
    found = ended(stack, made)
    assert (found.baseline.state, found.candidate.state) == (CANCELLED, FAILED)
    assert not found.verdict
    assert found.candidate.job_id in found.baseline.reason


def test_the_dataset_of_a_decision_cannot_be_deleted_meanwhile(stack: Stack, server: Knows) -> None:
    dataset = upload(stack, ROWS)
    server.behaviour.latency_s = 0.3
    try:
        made = started(stack, spec(dataset, "half"), spec(dataset, "half"))
        until(lambda: stack.job(made.decision_id).progress.items_done > 0)
        stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
        with pytest.raises(grpc.RpcError, match="is used by jobs that are not finished"):
            stub.DeleteDataset(dataset_service_pb2.DeleteDatasetRequest(dataset_id=dataset), timeout=30)
    finally:
        server.behaviour.latency_s = 0.02
    assert ended(stack, made).verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE


def test_one_side_can_be_deleted_afterwards(stack: Stack) -> None:
    dataset = upload(stack, ROWS)
    made = started(stack, spec(dataset, "half"), spec(dataset, "all"))
    ended(stack, made)
    stack.scheduler.DeleteJob(scheduler_service_pb2.DeleteJobRequest(job_id=made.candidate.job_id), timeout=30)
    listed = stack.results.ListDecisions(results_service_pb2.ListDecisionsRequest(), timeout=30).decisions
    assert made.decision_id not in [one.decision_id for one in listed]
    with pytest.raises(grpc.RpcError) as refused:
        stack.results.GetDecision(results_service_pb2.GetDecisionRequest(decision_id=made.decision_id), timeout=30)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert stack.job(made.decision_id).state == CANCELLED


def test_results_from_a_backup_in_the_middle_change_no_verdict(
    server: Knows, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    endpoint = {"name": "stub", "kind": "openai", "base_url": server.url, "concurrency": 4}
    with running(Stack(tmp_path, [endpoint]), request) as stack:
        dataset = upload(stack, ROWS)
        first = ended(stack, started(stack, spec(dataset, "half"), spec(dataset, "half"), seed=6))
        server.behaviour.latency_s = 0.25
        try:
            made = started(stack, spec(dataset, "half"), spec(dataset, "half"), seed=6)
            until(lambda: stack.job(made.decision_id).progress.items_done > 20)
            folder = operate(stack, "backup").splitlines()[-1]
            until(lambda: stack.job(made.decision_id).progress.items_done > 40)
            assert not stack.job(made.decision_id).HasField("decided")
            stack.stop()
        finally:
            server.behaviour.latency_s = 0.02
        for file in (stack.state_dir / "results").glob("touchstone.duckdb*"):
            file.unlink()
        operate(stack, "restore", folder)
        stack.start()
        found = ended(stack, made)
    assert first.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE
    assert (found.verdict, found.decided_at) == (first.verdict, first.decided_at)
