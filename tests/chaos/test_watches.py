"""Processes are killed while a watch looks, when a look is due, and when the alarm is: it is raised once, after the
canary that raises it without kills."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import time
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.results.sequential.alarm import SCORE, Asking, alarm
from tests.chaos import invariants
from tests.chaos.shooting import Run, Shot, run_under_fire
from tests.chaos.world import World, open_world, prompt_of
from tests.servers.openai_server import OpenAIServer
from tests.servers.webhook_receiver import Receiver, receiving
from tests.waiting import answered
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, watch_pb2

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("CHAOS_SEED", "20261129"))
ITEMS, ERROR, LOSES = 40, 0.01, 0.6
LATENCY_S = 0.25
"""So slow that a look of 40 items lasts for more than a second."""
LOOKS = (
    ("scheduler", "results"),
    ("evaluator-1", "results", "scheduler"),
    ("scheduler", "evaluator-2"),
)
"""What is killed in each, the last one as soon as the look has ended. There is a look each minute."""
CHANGES = 1
"""The first look at the other model."""
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def loses(prompt: str) -> bool:
    """Whether the model that comes later has no answer to it."""
    return int.from_bytes(hashlib.sha256(f"loses {prompt}".encode()).digest()[:4], "big") / 2**32 < LOSES


class Exchanged(OpenAIServer):
    is_other = False

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        return super().answer(body, "no answer" if self.is_other and loses(self.prompt(body)) else text)


async def start(world: World, reference: str) -> str:
    """Asks until it is answered, as a client does."""
    request = scheduler_service_pb2.StartWatchRequest(
        request_id=str(uuid.uuid4()), reference_job_id=reference, cron="* * * * *", items=ITEMS, error=ERROR, seed=SEED
    )

    async def ask() -> str:
        try:
            return str((await world.scheduler.StartWatch(request, timeout=5)).schedule.schedule_id)
        except grpc.aio.AioRpcError as error:
            if error.code() not in _AWAY:
                raise
            return ""

    return await answered(ask)


async def looks(world: World, schedule_id: str) -> list[job_pb2.Job]:
    """The jobs of the watch, oldest first; none while nobody answers."""
    try:
        found = [job for job in await world.jobs() if job.spec.schedule_id == schedule_id]
    except grpc.aio.AioRpcError as error:
        if error.code() not in _AWAY:
            raise
        return []
    return sorted(found, key=lambda job: job.job_id)


async def read(world: World, schedule_id: str, runs: int) -> watch_pb2.Watch:
    """Once it counts that many runs."""

    async def ask() -> watch_pb2.Watch:
        request = results_service_pb2.GetWatchRequest(schedule_id=schedule_id)
        try:
            return (await world.results.GetWatch(request, timeout=5)).watch
        except grpc.aio.AioRpcError as error:
            if error.code() not in (*_AWAY, grpc.StatusCode.NOT_FOUND):
                raise
            return watch_pb2.Watch()

    return await answered(ask, lambda watch: len(watch.runs) >= runs)


async def test_kills_raise_the_alarm_once_and_where_it_is_raised_without(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    async with receiving() as receiver, open_world(tmp_path, server=Exchanged) as world:
        assert isinstance(world.model, Exchanged)
        by_place = {(each.task, each.item): each for each in world.questions}
        await world.scheduler.CreateWebhook(scheduler_service_pb2.CreateWebhookRequest(url=f"{receiver.url}/ok"))
        reference = await world.submit("stub-0", limit=200)
        await world.finished(reference, 120)
        # The results service follows the scheduler by a moment.
        await answered(lambda: world.events(reference))
        world.model.behaviour.latency_s = LATENCY_S
        starting = asyncio.create_task(start(world, reference))
        await asyncio.sleep(rng.uniform(0, 0.05))
        await world.launched.kill("scheduler")
        schedule_id = await starting
        canaries: list[tuple[str, int]] = []
        runs: list[job_pb2.Job] = []
        for number, targets in enumerate(LOOKS):
            world.model.is_other = number >= CHANGES
            asked_before = len(world.model.records)
            run = await _look(world, rng, schedule_id, number, targets)
            runs.append(run.job)
            said = f"seed {SEED}, look {number}, kills {[kill.shot for kill in run.kills]}"
            assert run.job.state == job_pb2.Job.STATE_COMPLETED, said
            mine = [(each.task, each.item) for each in run.job.spec.watching.canaries]
            assert (len(mine), len(set(mine))) == (ITEMS, ITEMS), said
            assert not set(mine) & set(canaries), f"{said}: asked in an earlier look of the turn"
            canaries += mine
            stored = [(each.task, each.result.item) for each in await world.items(run.job.job_id)]
            assert sorted(stored) == sorted(mine), said
            sent: dict[str, list[float]] = {}
            for record in world.model.records[asked_before:]:
                sent.setdefault(prompt_of(record), []).append(record.at)
            assert sent.keys() == {by_place[place].prompt for place in mine}, said
            by_kill, unexplained = invariants.attributed(sent.values(), run.kills)
            assert not unexplained, said
            assert {run.kills[place].shot.target for place in by_kill} <= {"evaluator-1", "evaluator-2"}, said
            watch = await read(world, schedule_id, number + 1)
            alone = _alone(world, canaries)
            assert (watch.asked, watch.raised_after) == (len(canaries), alone or 0), said
            print(f"{said}: {watch.asked} asked, alarm after {watch.raised_after}, {by_kill} repeated")
        assert alone is not None
        assert CHANGES * ITEMS < alone <= (CHANGES + 1) * ITEMS
        assert [each.job_id for each in await looks(world, schedule_id)][: len(runs)] == [run.job_id for run in runs]
        assert (watch.raised_by, watch.raised_job_id) == (watch_pb2.WATCH_SIGNAL_SCORE, runs[CHANGES].job_id)
        alarms = await answered(lambda: _alarms(receiver))
        assert len({alarm["delivery_id"] for alarm in alarms}) == 1
        assert alarms[0]["job"]["job_id"] == runs[CHANGES].job_id
        assert alarms[0]["watch"]["schedule_id"] == schedule_id
        # What the last look has to tell is told: there is no second alarm.
        ends = {run.job_id for run in runs}
        await answered(lambda: _told(receiver), lambda told: ends <= told)
        assert len({alarm["delivery_id"] for alarm in await _alarms(receiver)}) == 1


async def _look(world: World, rng: random.Random, schedule_id: str, number: int, targets: tuple[str, ...]) -> Run:
    """One look under fire. The scheduler is also killed about when it is due."""
    await asyncio.sleep(60 - time.time() % 60 + rng.uniform(-0.6, 0.4))
    await world.launched.kill("scheduler")

    async def ask() -> job_pb2.Job | None:
        made = await looks(world, schedule_id)
        return made[number] if len(made) > number else None

    job = await answered(ask)
    assert job is not None
    during, last = targets[:-1], targets[-1]
    shots = [Shot(target, rng.uniform(0.1, 0.7), rng.uniform(0, 0.1)) for target in during]
    shots.sort(key=lambda shot: shot.share)
    shots.append(Shot(last, 1.0, rng.uniform(0, 0.1)))
    return await run_under_fire(world, number, job.spec.model, shots, job.job_id)


def _alone(world: World, canaries: list[tuple[str, int]]) -> int | None:
    """After how many canaries the alarm is raised by what the models know."""
    by_place = {(each.task, each.item): each for each in world.questions}
    asked = []
    for place, canary in enumerate(canaries):
        question = by_place[canary]
        lost = place >= CHANGES * ITEMS and question.right and loses(question.prompt)
        asked.append(Asking(0, -float(lost), None, None))
    found = alarm(asked, error=ERROR, second=False)
    assert found.by in (SCORE, "")
    return found.raised_at


async def _alarms(receiver: Receiver) -> list[dict[str, Any]]:
    told = [json.loads(call.body) for call in receiver.calls]
    return [each for each in told if each["event"] == "watch.alarm"]


async def _told(receiver: Receiver) -> set[str]:
    """Jobs of whose end the receiver has heard."""
    told = [json.loads(call.body) for call in receiver.calls]
    return {each["job"]["job_id"] for each in told if each["event"] == "job.completed"}
