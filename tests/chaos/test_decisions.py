"""Processes are killed at random while decisions are made: each verdict is that of the order and the answers alone."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from services import decision_order
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import Evidence, evidence
from services.words.enums import DECISION_VERDICTS
from tests import races
from tests.chaos import mirror
from tests.chaos.launched import SERVICES
from tests.chaos.world import World, open_world
from tests.servers.openai_server import OpenAIServer
from tests.waiting import answered
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("CHAOS_SEED", "20261129"))
DECISIONS, KILLS = 6, 3
LATENCY_S = 0.06
"""So slow that a decision lasts for some seconds."""
RACES, STARTS = 3, 2
"""Of the races, the first ones during whose start the scheduler or NATS is killed."""
STRONG, WEAK, EQUAL, GOOD = "stub-0", "stub-1", "stub-2", "stub-3"
_GIVES_UP = {STRONG: 0.0, WEAK: 0.2, EQUAL: 0.2, GOOD: 0.03}
"""By model, the share of prompts that it leaves without an answer."""
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def answers_it(model: str, prompt: str) -> bool:
    digest = hashlib.sha256(f"{model}/{prompt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 >= _GIVES_UP[model]


class Unequal(OpenAIServer):
    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        return super().answer(body, text if answers_it(body["model"], self.prompt(body)) else "no answer")


def expected(world: World, decision: decision_pb2.Decision) -> Evidence:
    """From the order and what the models know."""
    right = {(each.task, each.item): each for each in world.questions}
    sides = (decision.baseline, decision.candidate)
    plan, deciding = decision.baseline.plan, decision.baseline.spec.deciding
    pairs = []
    for task, position in decision_order.order(plan, deciding.seed):
        question = right[plan[task].task, position]
        a, b = (float(question.right and answers_it(one.spec.model, question.prompt)) for one in sides)
        pairs.append(Pair(a, b, plan[task].task))
    strata = {task.task: task.items for task in plan}
    return evidence(pairs, error=deciding.error, margin=deciding.margin, total=len(pairs), strata=strata)


def expected_of_race(world: World, jobs: Sequence[job_pb2.Job]) -> races.Expected:
    right = {(each.task, each.item): each for each in world.questions}
    plan, deciding = jobs[0].plan, jobs[0].spec.deciding
    items = list[races.Item]()
    for task, position in decision_order.order(plan, deciding.seed):
        question = right[plan[task].task, position]
        scores = [float(question.right and answers_it(one.spec.model, question.prompt)) for one in jobs]
        items.append((plan[task].task, scores))
    return races.Expected.of(deciding, items, {task.task: task.items for task in plan})


async def start(world: World, *models: str, seed: int) -> str:
    work = job_pb2.SuiteWork(suite="glue", tasks=list(mirror.TASKS))
    baseline, candidate, *further = (job_pb2.JobSpec(endpoint="stub", model=model, suite=work) for model in models)
    request = scheduler_service_pb2.StartDecisionRequest(
        request_id=str(uuid.uuid4()), seed=seed, baseline=baseline, candidate=candidate, further_candidates=further
    )

    async def ask() -> str:
        try:
            return str((await world.scheduler.StartDecision(request, timeout=5)).decision_id)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _AWAY:
                raise
            return ""

    return await answered(ask)


async def read(world: World, decision_id: str) -> decision_pb2.Decision:
    """As soon as both services are there."""

    async def ask() -> decision_pb2.Decision | None:
        request = results_service_pb2.GetDecisionRequest(decision_id=decision_id)
        try:
            return (await world.results.GetDecision(request, timeout=5)).decision
        except grpc.aio.AioRpcError as error:
            # Of a new job the results service hears a moment later.
            if error.code() not in (*_AWAY, grpc.StatusCode.NOT_FOUND):
                raise
            return None

    found = await answered(ask)
    assert found is not None
    return found


async def test_kills_of_any_process_change_no_verdict(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    targets = [target for _ in range(DECISIONS * KILLS // len(SERVICES)) for target in SERVICES]
    rng.shuffle(targets)
    found: Counter[int] = Counter()
    async with open_world(tmp_path, server=Unequal) as world:
        world.model.behaviour.latency_s = LATENCY_S
        for number in range(DECISIONS):
            models = rng.choice([(WEAK, STRONG), (STRONG, WEAK), (EQUAL, WEAK)])
            decision_id = await start(world, *models, seed=number)
            other = (await read(world, decision_id)).candidate.job_id
            asked_before = len(world.model.records)
            kills = []
            for moment in sorted(rng.uniform(0, 300) for _ in range(KILLS)):
                await answered(lambda: _reached(world, decision_id, asked_before + moment))  # noqa: B023
                await asyncio.sleep(rng.uniform(0, 0.2))
                kills.append(targets.pop())
                await world.launched.kill(kills[-1])
            for job_id in (decision_id, other):
                await world.finished(job_id, 180)
            await world.launched.until_ready()
            decision = await _settled(world, decision_id)
            alone = expected(world, decision)
            said = f"seed {SEED}, decision {number}, {models}, kills {kills}"
            assert (decision.verdict, decision.decided_at) == (DECISION_VERDICTS[alone.verdict], alone.decided_at), said
            assert decision.baseline.spec.deciding.error == 0.05, said
            for job in (decision.baseline, decision.candidate):
                await answered(lambda: _counted(world, job.job_id))  # noqa: B023
            print(
                f"{said}: {decision.verdict} after {decision.decided_at}, asked {decision.baseline.progress.items_done}"
            )
            found[decision.verdict] += 1
    assert not targets
    assert len(found) > 1, found


async def test_kills_of_any_process_change_no_race(tmp_path: Path) -> None:
    rng = random.Random(SEED + 1)
    targets = [*SERVICES, *rng.sample(SERVICES, RACES * KILLS - len(SERVICES))]
    rng.shuffle(targets)
    started, beaten = 0, 0
    async with open_world(tmp_path, server=Unequal) as world:
        world.model.behaviour.latency_s = LATENCY_S
        for number in range(RACES):
            models = rng.sample([STRONG, WEAK, EQUAL, GOOD], rng.choice([3, 4]))
            asked_before, kills = len(world.model.records), list[str]()
            starting = asyncio.create_task(start(world, *models, seed=number))
            if number < STARTS:
                await asyncio.sleep(rng.uniform(0, 0.03))
                kills.append(("scheduler", "nats")[number])
                await world.launched.kill(kills[-1])
            race_id = await starting
            started += len(models)
            jobs = await _all_heard(world, race_id, len(models))
            assert [job.spec.model for job in jobs] == models
            for moment in sorted(rng.uniform(0, 400) for _ in range(KILLS)):
                await answered(lambda: _reached(world, race_id, asked_before + moment))  # noqa: B023
                await asyncio.sleep(rng.uniform(0, 0.2))
                kills.append(targets.pop())
                await world.launched.kill(kills[-1])
            for job in jobs:
                await world.finished(job.job_id, 180)
            await world.launched.until_ready()
            said = f"seed {SEED}, race {number}, {models}, kills {kills}"
            race = await _settled(world, race_id)
            jobs = [racer.job for racer in race.racers]
            alone = expected_of_race(world, jobs)
            wrong = [alone.wrong(job, jobs) for job in jobs if job.HasField("decided")]
            problems = [*filter(None, wrong), *alone.misread(jobs, race)]
            assert not problems, (said, problems)
            for job in jobs:
                assert job.HasField("decided") or job.state == job_pb2.Job.STATE_COMPLETED, said
                await answered(lambda: _counted(world, job.job_id))  # noqa: B023
            beaten += sum(map(races.is_beaten, jobs))
            # No job of a race was left out or made twice, and nobody asks for the beaten any more.
            assert len(await world.jobs()) == started, said
            assert await world.messages("WORK") == 0, said
            ends = [f"{job.spec.model} {job.decided.verdict} after {job.decided.pairs}" for job in jobs]
            print(f"{said}: {race.verdict} after {race.decided_at}: {', '.join(ends)}")
    assert not targets
    assert beaten, "no race had a beaten model"


async def _counted(world: World, job_id: str) -> bool:
    """Whether the scheduler counts what is stored: it settles with the last answers after a job has stopped."""
    items = [(item.task, item.result.item) for item in await world.items(job_id)]
    assert len(items) == len(set(items)), job_id
    job = await world.job(job_id)
    return job is not None and job.progress.items_done == len(items)


async def _all_heard(world: World, race_id: str, models: int) -> list[job_pb2.Job]:
    """The jobs of a race once the results service has heard of all of them."""

    async def ask() -> list[job_pb2.Job]:
        return [racer.job for racer in (await read(world, race_id)).racers]

    return await answered(ask, lambda jobs: len(jobs) == models)


async def _reached(world: World, decision_id: str, calls: float) -> bool:
    """Whether so many calls were made, or the decision is over."""
    job = await world.job(decision_id)
    return len(world.model.records) >= calls or (job is not None and job.HasField("finished_at"))


async def _settled(world: World, decision_id: str) -> decision_pb2.Decision:
    """Once the results service has heard of both ends."""

    async def ask() -> decision_pb2.Decision:
        return await read(world, decision_id)

    def whole(decision: decision_pb2.Decision) -> bool:
        sides = [racer.job for racer in decision.racers] or [decision.baseline, decision.candidate]
        return all(side.HasField("finished_at") for side in sides) and bool(decision.verdict)

    return await answered(ask, whole)
