"""An experiment's way through every process: models are asked one after another and leave the memory after each answer,
and every cell is answered once, whatever is killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from aiohttp import web

from services.experiments.scenarios import tips
from tests.servers.ollama_server import OllamaServer
from tests.servers.stub import Behaviour
from tests.stack import Stack, running, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

SIZES = {"qwen2.5:0.5b": 0.49, "qwen2.5:1.5b": 1.54, "gemma3:1b": 1.0, "llama3.2:3b": 3.2, "giant": 70.0, "judge": 8.0}
MODELS = list(SIZES)[:4]
PROMPTS = ["v1", "v2-mentor", "v3-few-shot"]
SCENARIOS = tips()[:40]
SCORES = {"relevance": 4, "actionability": 3, "tone": 5}


class Machine(OllamaServer):
    """One with room for a single model. `story` has each (event, model): "load", "ask", "unload"."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self.sizes = SIZES
        self.memory: Counter[str] = Counter()
        """By model, requests that need it now; a model without stays unless a request unloads it."""
        self.story: list[tuple[str, str]] = []
        self.together: set[frozenset[str]] = set()
        """Models that were in memory at the same time."""

    async def loaded(self, request: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": name, "model": name} for name in self.memory]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await self.body(request)
        model = str(body["model"])
        if model not in self.memory:
            self.story.append(("load", model))
        self.memory[model] += 1
        if len(self.memory) > 1:
            self.together.add(frozenset(self.memory))
        self.story.append(("ask", model))
        try:
            return await super().chat(request)
        finally:
            self.memory[model] -= 1
            if body.get("keep_alive") == 0 and not self.memory[model]:
                del self.memory[model]
                self.story.append(("unload", model))


def _answer(prompt: str) -> str:
    return json.dumps({"reason": "fine", **SCORES}) if "<answer-" in prompt else json.dumps([f"Tip {len(prompt)}"] * 5)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with stub_thread() as stubs:
        yield stubs.start(Machine(Behaviour(models=tuple(SIZES), answer=_answer, latency_s=0.004)))


@pytest.fixture(scope="module")
def stack(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    endpoints = [{"name": "ollama", "kind": "ollama", "base_url": machine.url, "keep_alive": "30m"}]
    with running(Stack(tmp_path_factory.mktemp("experiments"), endpoints), request) as started:
        started.know_models("ollama")
        yield started


def _run(stack: Stack, *judges: job_pb2.Judge, **definition: Any) -> scheduler_service_pb2.RunExperimentResponse:
    request = scheduler_service_pb2.RunExperimentRequest(definition=json.dumps(definition), judges=judges)
    return stack.scheduler.RunExperiment(request, timeout=60)


def test_every_cell_is_answered_once_whatever_is_killed_and_no_two_models_are_in_memory(
    stack: Stack, machine: Machine
) -> None:
    definition = {
        "name": "tip-bench-2026-04-27",
        "models": MODELS,
        "prompts": PROMPTS,
        "scenarios": {"set": "tips", "count": len(SCENARIOS)},
        "n_tips": 5,
        "diversity": True,
    }
    each = len(PROMPTS) * len(SCENARIOS)
    begun = _run(stack, **definition)
    assert (begun.cells, begun.calls, len(begun.jobs)) == (4 * each, 4 * each, 4)
    ids = [job.job_id for job in begun.jobs]
    until(lambda: len(machine.records) > each // 3, 60)
    stack.kill("scheduler")
    until(lambda: len(machine.records) > each, 90)
    stack.kill("evaluator-1")
    until(lambda: len(machine.records) > 3 * each // 2, 90)
    live = [job_id for job_id in ids if stack.job(job_id).state == job_pb2.Job.STATE_RUNNING]
    cancelled = live[0]
    stack.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=cancelled), timeout=20)
    again = _run(stack, **definition)
    assert [job.job_id for job in again.jobs] == ids
    assert again.dataset_id == begun.dataset_id
    for job_id in ids:
        done = stack.wait(job_id, 240)
        assert (done.state, done.incomplete) == (job_pb2.Job.STATE_COMPLETED, False), done.reason
        assert done.attempt == (2 if job_id == cancelled else 1)
        asked = Counter(item.result.custom_id for item in stack.items(job_id))
        assert asked == Counter(f"{prompt}/{one.scenario_id}" for prompt in PROMPTS for one in SCENARIOS)

    calls = Counter((one.body["model"], json.dumps(one.body["messages"])) for one in machine.records)
    assert len(calls) == 4 * each
    # What was under way at the two kills and the cancellation may be asked again.
    assert sum(calls.values()) <= 4 * each + 3 * 8
    assert {one.body["keep_alive"] for one in machine.records} == {0}
    assert machine.together == set()
    assert not machine.memory
    assert Counter(event for event, _ in machine.story)["load"] == len(machine.records)
    # A model is asked until its job is done; the cancelled one's continues later.
    turns = [model for model, _ in groupby(model for _, model in machine.story)]
    assert len(turns) <= 4 + 2


def test_a_judge_on_the_same_machine_is_loaded_once_all_answers_are_there(stack: Stack, machine: Machine) -> None:
    machine.story.clear()
    judge = job_pb2.Judge(endpoint="ollama", model="judge")
    definition = {"name": "judged", "models": MODELS[:2], "prompts": ["v1"], "scenarios": {"set": "tips", "count": 12}}
    with pytest.raises(Exception, match="judge at ollama has 8 billion parameters; max_model_b is 4"):
        _run(stack, judge, **definition)
    made = _run(stack, judge, **definition, max_judge_b=8)
    for job in made.jobs:
        assert stack.wait(job.job_id).state == job_pb2.Job.STATE_COMPLETED

    def judges() -> list[job_pb2.Job]:
        listed = stack.scheduler.ListJobs(scheduler_service_pb2.ListJobsRequest(), timeout=20).jobs
        return [job for job in listed if job.spec.HasField("judging")]

    until(lambda: len(judges()) == 2, 30)
    assert {job.spec.judging.job_id for job in judges()} == {job.job_id for job in made.jobs}
    for job in judges():
        assert stack.wait(job.job_id).state == job_pb2.Job.STATE_COMPLETED
        assert all(json.loads(item.result.prediction) == SCORES for item in stack.items(job.job_id))
    assert machine.together == set()
    asked = [model for event, model in machine.story if event == "ask"]
    assert asked[-24:] == ["judge"] * 24
    assert sorted(asked[:-24]) == sorted(MODELS[:2] * 12)

    board = stack.results.GetExperiment(results_service_pb2.GetExperimentRequest(name="judged"), timeout=20)
    assert (board.judge, board.source) == ("ollama/judge", results_service_pb2.GetExperimentRequest.SOURCE_JUDGE)
    assert [(row.rank, row.rank_low, row.rank_high, row.scored, row.judge_failures) for row in board.rows] == [
        (1, 1, 2, 12, 0)
    ] * 2
    for row in board.rows:
        assert row.composite.value == pytest.approx(0.4 * 0.75 + 0.4 * 0.5 + 0.2 * 1)
        assert [one.score.value for one in row.criteria] == [0.75, 0.5, 1.0]
        # All tips of an answer are the same.
        assert (row.diversity.value, row.diversity.n) == (0.0, 12)

    again = _run(stack, job_pb2.Judge(endpoint="ollama", model="giant"), **definition | {"max_judge_b": 0})
    assert [(job.job_id, job.attempt, job.state) for job in again.jobs] == [
        (job.job_id, 1, job_pb2.Job.STATE_COMPLETED) for job in made.jobs
    ]
    until(lambda: len(judges()) == 4, 30)
    for job in judges():
        assert stack.wait(job.job_id).state == job_pb2.Job.STATE_COMPLETED
    asking = results_service_pb2.GetExperimentRequest(name="judged")
    until(lambda: len(stack.results.GetExperiment(asking, timeout=20).judges) == 2, 30)
    for job in made.jobs:
        assert stack.get(f"/results/{job.job_id}")["status"] == "completed"
        assert len(stack.items(job.job_id)) == 12


def test_a_model_that_is_too_large_is_refused_by_the_size_that_its_endpoint_tells(stack: Stack) -> None:
    with pytest.raises(Exception, match="giant at ollama has 70 billion parameters"):
        _run(stack, name="large", models=["giant"], prompts=["v1"], n_scenarios=1)
