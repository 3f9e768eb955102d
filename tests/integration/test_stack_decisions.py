"""Decisions through every process: two models answer the same rows in one random order, stop once the verdict is known,
and get the same verdict whatever is killed."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import permutations
from typing import Any

import grpc
import pytest

from services import decision_order
from tests.integration.test_stack_users import receiver_thread
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.servers.webhook_receiver import Receiver
from tests.stack import Stack, running, touchstone, until
from tests.stack_decisions import ended, started
from tests.stub_thread import stub_thread
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    decision_pb2,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)

pytestmark = pytest.mark.stack

ROWS = 600
SHARES = {"weak": 0.6, "strong": 0.9, "twin": 0.6, "other": 0.6}
"""By model, the share of rows that it has right."""
COMPLETED, CANCELLED = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_CANCELLED


def right(model: str, row: int) -> bool:
    # The twin is right where the weak one is, the other one as often, elsewhere.
    name = "weak" if model == "twin" else model
    digest = hashlib.sha256(f"{name}/{row}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 < SHARES[model]


class Graded(OpenAIServer):
    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        row = int(self.prompt(body).split()[-1])
        return super().answer(body, f"answer {row}" if right(body["model"], row) else "something else")


@pytest.fixture(scope="module")
def server() -> Iterator[Graded]:
    with stub_thread() as stubs:
        yield stubs.start(Graded(Behaviour(models=tuple(SHARES), latency_s=0.03)))


@pytest.fixture(scope="module")
def stack(server: Graded, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    endpoints = [
        {"name": name, "kind": "openai", "base_url": server.url, "concurrency": calls}
        for name, calls in (("one", 8), ("two", 8), ("wide", 64))
    ]
    with running(Stack(tmp_path_factory.mktemp("decisions"), endpoints), request) as started:
        started.know_models("one", "two", "wide")
        yield started


@pytest.fixture(scope="module")
def dataset(stack: Stack) -> str:
    return upload(stack, "Say")


def upload(stack: Stack, prompt: str) -> str:
    lines = [json.dumps({"prompt": f"{prompt} {row}", "reference": f"answer {row}"}) for row in range(ROWS)]
    stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
    options = dataset_pb2.DatasetOptions(name="rows.jsonl", scoring=scoring_pb2.Scoring(scorer="exact_match"))
    requests = iter([dataset_service_pb2.UploadDatasetRequest(options=options, data="\n".join(lines).encode())])
    return str(stub.UploadDataset(requests, timeout=120).dataset.dataset_id)


def start(
    stack: Stack, dataset: str, baseline: str, candidate: str, *further: str, **options: Any
) -> scheduler_service_pb2.StartDecisionResponse:
    def spec(place: str) -> job_pb2.JobSpec:
        model, _, endpoint = place.partition("@")
        return job_pb2.JobSpec(endpoint=endpoint, model=model, dataset=job_pb2.DatasetWork(dataset_id=dataset))

    return started(stack, spec(baseline), spec(candidate), *map(spec, further), **options)


def answers(stack: Stack, job_id: str) -> bool:
    """Whether both services are there again."""
    try:
        stack.job(job_id)
        stack.results.GetJob(results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id), timeout=30)
    except grpc.RpcError:
        return False
    return True


def asked(server: Graded) -> Counter[str]:
    return Counter(str(record.body["model"]) for record in server.records)


def test_a_better_model_is_found_with_few_calls(stack: Stack, server: Graded, dataset: str) -> None:
    server.records.clear()
    made = start(stack, dataset, "weak@one", "strong@two")
    decision = ended(stack, made)
    assert decision.verdict == job_pb2.DECISION_VERDICT_BETTER
    assert {decision.baseline.state, decision.candidate.state} == {CANCELLED}
    assert "The candidate is better than the baseline" in decision.candidate.reason
    assert 0 < decision.low <= decision.difference <= decision.high <= 1
    assert decision.decided_at < ROWS // 3, decision
    for job in (decision.baseline, decision.candidate):
        # Twice the 8 calls of its endpoint.
        assert job.progress.items_done <= decision.decided_at + max(16, decision.decided_at // 8) + 16, asked(server)
    # Both were asked the same items, and none much earlier than by the other.
    order = [position for _, position in decision_order.order(decision.baseline.plan, 0)]
    for job in (decision.baseline, decision.candidate):
        stored = {item.result.position for item in stack.items(job.job_id)}
        assert stored >= set(order[: decision.decided_at])
    assert decision.saved.items == 2 * ROWS - sum(
        len(stack.items(job.job_id)) for job in (decision.baseline, decision.candidate)
    )
    assert decision.saved.tokens > 0


def test_the_other_way_round_it_is_worse(stack: Stack, dataset: str) -> None:
    decision = ended(stack, start(stack, dataset, "strong@one", "weak@one", seed=3))
    assert decision.verdict == job_pb2.DECISION_VERDICT_WORSE
    assert -1 <= decision.low <= decision.difference <= decision.high < 0
    assert decision.decided_at < ROWS // 3


def test_equal_models_are_equivalent_within_a_margin_and_else_not_different(stack: Stack, dataset: str) -> None:
    decision = ended(stack, start(stack, dataset, "weak@one", "twin@two", margin=0.15))
    assert decision.verdict == job_pb2.DECISION_VERDICT_EQUIVALENT
    decision = ended(stack, start(stack, dataset, "weak@one", "other@two"))
    assert decision.verdict == job_pb2.DECISION_VERDICT_NO_DIFFERENCE


def test_a_kill_of_any_process_changes_no_verdict(stack: Stack, server: Graded, dataset: str) -> None:
    undisturbed = ended(stack, start(stack, dataset, "weak@one", "strong@two", seed=7))
    for service in ("scheduler", "results", "evaluator-1"):
        server.records.clear()
        made = start(stack, dataset, "weak@one", "strong@two", seed=7)
        until(lambda: sum(asked(server).values()) > undisturbed.decided_at // 2, 60)
        stack.kill(service)
        until(partial(answers, stack, made.decision_id), 120)
        decision = ended(stack, made)
        assert (decision.verdict, decision.decided_at) == (undisturbed.verdict, undisturbed.decided_at), service
        assert decision.saved.items > 0, service


def test_a_race_finds_the_best_whatever_is_killed(stack: Stack, server: Graded, dataset: str) -> None:
    models = ("weak@one", "strong@two", "other@one", "twin@two", "weak@two")
    beaten: dict[str, dict[str, tuple[int, str]]] = {}
    for service in ("", "scheduler", "results"):
        server.records.clear()
        made = start(stack, dataset, *models, seed=8)
        if service:
            until(lambda: sum(asked(server).values()) > 150, 60)
            stack.kill(service)
            until(partial(answers, stack, made.decision_id), 120)
        found = ended(stack, made)
        assert found.verdict == job_pb2.DECISION_VERDICT_BEST, service
        assert [racer.job.spec.model for racer in found.racers if racer.state == racer.STATE_BEST] == ["strong"]
        # Little is asked while a service is away, but some is.
        assert found.saved.items > (0 if service else 3 * ROWS), service
        names = {racer.job.job_id: f"{racer.job.spec.model}@{racer.job.spec.endpoint}" for racer in found.racers}
        beaten[service] = {
            names[racer.job.job_id]: (racer.beaten_at, names.get(racer.against_job_id, "")) for racer in found.racers
        }
        assert all(
            f"{by} is better, after {at:,} of" in racer.job.reason
            for racer in found.racers
            for at, by in [beaten[service][names[racer.job.job_id]]]
            if at and racer.job.state == CANCELLED
        )
    assert beaten[""] == beaten["scheduler"] == beaten["results"]


def test_no_call_ends_later_than_2_s_after_the_answers_that_decide(stack: Stack, server: Graded, dataset: str) -> None:
    server.behaviour.latency_s = latency_s = 0.5
    try:
        server.records.clear()
        server.most_in_flight = 0
        made = start(stack, dataset, "weak@wide", "strong@wide", seed=1)
        stack.wait(made.candidate.job_id, 120)
        until(lambda: server.in_flight == 0, 10, 0.005)
        ended_at, seen = time.monotonic(), len(server.records)
        time.sleep(1)
        assert len(server.records) == seen
        decision = ended(stack, made)
    finally:
        server.behaviour.latency_s = 0.03
    assert server.most_in_flight == 64
    order = [position for _, position in decision_order.order(decision.baseline.plan, 1)]
    needed = set(order[: decision.decided_at])
    called = [record.at for record in server.records if int(server.prompt(record.body).split()[-1]) in needed]
    assert len(called) == 2 * decision.decided_at
    # Each job was asked at most its part of the calls at once beyond, and as much again while these were looked at.
    assert seen <= 2 * (decision.decided_at + 64 + 2 * decision_order.UNIT)
    assert ended_at - (max(called) + latency_s) < 2


def test_a_retry_runs_the_rest_and_keeps_the_verdict(stack: Stack, server: Graded, dataset: str) -> None:
    made = start(stack, dataset, "weak@one", "strong@two", seed=11)
    before = ended(stack, made)
    for job in (before.baseline, before.candidate):
        stack.scheduler.RetryJob(scheduler_service_pb2.RetryJobRequest(job_id=job.job_id), timeout=30)
    after = ended(stack, made)
    assert {after.baseline.state, after.candidate.state} == {COMPLETED}
    assert (after.verdict, after.decided_at) == (before.verdict, before.decided_at)
    for job in (after.baseline, after.candidate):
        assert sorted(item.result.position for item in stack.items(job.job_id)) == list(range(ROWS))


def test_a_cancelled_side_ends_the_other(stack: Stack, dataset: str) -> None:
    made = start(stack, dataset, "weak@one", "twin@two", seed=5)
    until(lambda: stack.job(made.candidate.job_id).progress.items_done > 0, 60)
    stack.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=made.candidate.job_id), timeout=30)
    decision = ended(stack, made)
    assert decision.verdict == job_pb2.DECISION_VERDICT_UNSPECIFIED
    assert decision.baseline.state == CANCELLED
    assert made.candidate.job_id in decision.baseline.reason


def test_two_prompts_of_the_same_rows_are_decided_between(stack: Stack, dataset: str) -> None:
    other = upload(stack, "Think twice, then say")
    made = touchstone(stack, "decide", "weak@one", "strong@two", "--dataset", dataset, "--set", f"2:dataset={other}")
    assert made.returncode == 0, made.stderr
    assert "strong@two is better than weak@one" in made.stdout


def test_a_schedule_starts_whole_decisions_although_the_scheduler_is_killed(stack: Stack, dataset: str) -> None:
    with receiver_thread() as receiver, stack.client() as client:
        told = {"url": f"{receiver.url}/told", "events": ["decision.ended"]}
        webhook = client.post("/webhooks", json=told).raise_for_status().json()["webhook_id"]
        until(lambda: time.time() % 60 < 50)
        made = touchstone(stack, "schedules", "decide", "* * * * *", "weak@one", "strong@two", "--dataset", dataset)
        assert made.returncode == 0, made.stderr
        schedule_id, due = made.stdout.strip(), 60 * (time.time() // 60 + 1)
        until(lambda: time.time() >= due, 70, 0.01)
        # While it comes due, between its decision and the next look at the clock, and while the decision runs.
        stack.kill("scheduler")
        until(lambda: decisions_of(stack, schedule_id), 60, 0.01)
        stack.kill("scheduler")
        until(lambda: decisions_of(stack, schedule_id)[0].pairs, 60)
        stack.kill("scheduler")
        until(lambda: sum(one.HasField("saved") for one in decisions_of(stack, schedule_id)) == 2, 180)
        client.delete(f"/schedules/{schedule_id}").raise_for_status()
        found = decisions_of(stack, schedule_id)
        until(lambda: len({told["decision_id"] for told in ended_of(receiver)}) == len(found))
        client.delete(f"/webhooks/{webhook}").raise_for_status()
    assert {one.verdict for one in found} == {job_pb2.DECISION_VERDICT_BETTER}
    assert len({one.baseline.created_at.seconds // 60 for one in found}) == 2
    assert len({one.baseline.spec.deciding.seed for one in found}) == 2
    # Two jobs of each, and no others.
    listed = stack.results.ListJobs(results_service_pb2.ResultsServiceListJobsRequest(page_size=200), timeout=30).jobs
    pairs = {one.job_id: one.spec.deciding.against_job_id for one in listed if one.spec.schedule_id == schedule_id}
    assert pairs == {one: other for two in found for one, other in permutations(sides_of(two))}
    for one in ended_of(receiver):
        assert (one["schedule_id"], one["verdict"], one["saved"]["items"] > 0) == (schedule_id, "better", True)
        assert one["words"] == "strong@two is better than weak@one."


def decisions_of(stack: Stack, schedule_id: str) -> list[decision_pb2.Decision]:
    request = results_service_pb2.ListDecisionsRequest(schedule_id=schedule_id)
    return list(stack.results.ListDecisions(request, timeout=30).decisions)


def sides_of(found: decision_pb2.Decision) -> tuple[str, str]:
    return found.baseline.job_id, found.candidate.job_id


def ended_of(receiver: Receiver) -> list[dict[str, Any]]:
    """What calls said of decisions; a call may come twice."""
    return [json.loads(call.body)["decision"] for call in receiver.to("/told")]


def test_the_command_says_it_in_a_sentence(stack: Stack, dataset: str) -> None:
    done = touchstone(stack, "decide", "weak@one", "strong@two", "--dataset", dataset)
    assert done.returncode == 0, done.stderr
    assert "strong@two is better than weak@one" in done.stdout
