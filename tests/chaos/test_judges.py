"""A judge's job while processes are killed: no judgement is asked twice, except those that a killed evaluator was
waiting for or had just received."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.parts import NIGHTLY
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, Stack, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.chaos

ROWS, AT_ONCE, LATENCY_S, UNIT = 400, 8, 0.2, 40
KILLS = 4
SEED = int(os.environ.get("CHAOS_SEED", "20261129"))
SEEDS = range(SEED, SEED + (8 if NIGHTLY else 1))
JUST_RECEIVED_S = 0.15
"""Far above the 20 ms for which an evaluator keeps an answer, as it may share its processor with other tests. In this
time the judge gives six answers."""
EVALUATOR = "evaluator-1"
OTHERS = ("scheduler", "results", "nats", "gateway")
_RUBRIC = {"version": "tone-v1", "criteria": [{"name": "tone"}]}
_JUDGEMENT = json.dumps({"reason": "fine", "tone": 4})
_ANSWER = re.compile(r"<answer-[0-9a-f]{12}>\ntip (\d+)\n</answer-")
_ACK_WAIT_S = "3"


@dataclass
class Judge:
    """A model that answers, and judges. It notes when it gave each judgement, by the number of the answer."""

    given: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, prompt: str) -> str:
        if (found := _ANSWER.search(prompt)) is None:
            return f"tip {prompt.rsplit(' ', 1)[1]}"
        self.given[int(found[1])].append(time.monotonic())
        return _JUDGEMENT


@dataclass
class Fired:
    """The judge's job, when each judgement was asked for, and the times between which the evaluator was killed."""

    job: job_pb2.Job
    asked: dict[int, list[float]]
    kills: list[tuple[float, float]]


class World:
    """A stack with one evaluator, and a job whose answers are judged under fire."""

    def __init__(self, stack: Stack, model: OpenAIServer, judge: Judge) -> None:
        self.stack, self.model, self.judge = stack, model, judge
        self._seen = 0

    def answered(self) -> str:
        """The id of a job with an answer for each row."""
        lines = [{"custom_id": f"r{n}", "prompt": f"A tip for {n}"} for n in range(ROWS)]
        content = "\n".join(map(json.dumps, lines)).encode()
        with httpx.Client(base_url=self.stack.url, trust_env=False, timeout=60) as client:
            sent = client.post("/admin/datasets/upload", files={"file": ("tips.jsonl", content)})
            assert sent.status_code == 200, sent.text
            dataset = sent.json()["dataset_id"]
            run = client.post(
                "/admin/benchmarks/run", json={"model_id": "small", "provider": "stub", "dataset_id": dataset}
            )
            assert run.status_code == 200, run.text
        job_id = str(uuid.UUID(run.json()["benchmark_id"].removeprefix("bm_")))
        assert self.stack.wait(job_id).state == job_pb2.Job.STATE_COMPLETED
        return job_id

    def judged_under_fire(self, judged: str, targets: Sequence[Sequence[str]], chance: Random) -> Fired:
        """Judges the job's answers and kills the processes of each target together: one target after the other, at
        drawn moments."""
        self.judge.given.clear()
        self._seen = len(self.model.records)
        body = {"config": {"provider": "stub", "model": "judge"}, "rubric": _RUBRIC}
        made = httpx.post(f"{self.stack.url}{API}/judge/{judged}", json=body, trust_env=False, timeout=120)
        assert made.status_code == 200, made.text
        job_id = made.json()["job_id"]
        kills: list[tuple[float, float]] = []
        moments = sorted(chance.sample(range(ROWS // 20, ROWS * 9 // 10), len(targets)))
        for moment, processes in zip(moments, targets, strict=True):
            until(lambda least=moment: len(self.judge.given) >= least, 120)  # type: ignore[misc]
            time.sleep(chance.uniform(0, LATENCY_S))
            for process in processes:
                before = time.monotonic()
                self.stack.kill(process)
                if process == EVALUATOR:
                    kills.append((before, time.monotonic()))
        return Fired(self.stack.wait(job_id, 180), self._asked(), kills)

    def _asked(self) -> dict[int, list[float]]:
        asked: dict[int, list[float]] = defaultdict(list)
        for record in self.model.records[self._seen :]:
            found = _ANSWER.search(self.model.prompt(record.body))
            assert found is not None
            asked[int(found[1])].append(record.at)
        return asked

    def check(self, fired: Fired) -> int:
        """Every answer is judged and stored once. Returns how many judgements were asked for again, all of them in
        flight or just received when the evaluator was killed."""
        assert fired.job.state == job_pb2.Job.STATE_COMPLETED, fired.job.reason
        ids = [item.result.custom_id for item in self.stack.items(fired.job.job_id)]
        assert sorted(ids) == sorted(f"rows/{n}/0" for n in range(ROWS))
        assert sorted(fired.asked) == list(range(ROWS))
        again = 0
        for number, times in fired.asked.items():
            given = self.judge.given[number]
            for first, second in pairwise(times):
                again += 1
                between = [before for before, after in fired.kills if first < after and before < second]
                assert between, f"answer {number} was judged again although its evaluator lived"
                had = [between[0] - at for at in given if first <= at < second]
                assert all(age <= JUST_RECEIVED_S for age in had), f"{number} was received {had} s before the kill"
        return again


@contextmanager
def _world(folder: Path) -> Iterator[World]:
    judge = Judge()
    with stub_thread() as stubs:
        model = stubs.start(OpenAIServer(Behaviour(models=("small", "judge"), answer=judge, latency_s=LATENCY_S)))
        stack = Stack(
            folder,
            [{"name": "stub", "kind": "openai", "base_url": model.url, "concurrency": AT_ONCE}],
            environment={"TOUCHSTONE_ACK_WAIT_S": _ACK_WAIT_S, "TOUCHSTONE_UNIT_SIZE": str(UNIT)},
        )
        try:
            stack.start().know_models("stub")
            yield World(stack, model, judge)
        finally:
            stack.stop()


def test_what_a_killed_evaluator_had_received_is_not_asked_again(tmp_path: Path) -> None:
    with _world(tmp_path) as world:
        judged = world.answered()
        for seed in SEEDS:
            chance = Random(seed)
            # The results service says what is stored already. It may be away just then.
            targets = [(EVALUATOR, *chance.choice([(), ("results",), ("scheduler",)])) for _ in range(KILLS)]
            fired = world.judged_under_fire(judged, targets, chance)
            again = world.check(fired)
            print(f"seed {seed}: {targets}: {again} judgements asked again")
            # In flight, or just received.
            assert again <= KILLS * AT_ONCE * (1 + JUST_RECEIVED_S / LATENCY_S)


def test_no_judgement_is_asked_twice_while_the_evaluator_lives(tmp_path: Path) -> None:
    with _world(tmp_path) as world:
        judged = world.answered()
        for seed in SEEDS:
            chance = Random(seed)
            targets = [(process,) for process in chance.sample(OTHERS, len(OTHERS))]
            assert world.check(world.judged_under_fire(judged, targets, chance)) == 0
