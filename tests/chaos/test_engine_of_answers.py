"""Random kills while stored answers stand in for calls: re-scores, a re-run, equal requests' answers, three answers."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.invariants import ACTIONS, attributed, most_repeated
from tests.chaos.launched import EVALUATORS
from tests.chaos.shooting import Kill, Run, Shot, come_back, job_under_watch
from tests.chaos.world import MODELS, World, open_world, prompt_of
from tests.oracle import NONSENSE
from tests.servers.openai_server import OpenAIServer
from tests.stack import Endpoint
from touchstone.v1 import item_result_pb2, job_pb2

pytestmark = pytest.mark.chaos

SEED = int(os.environ.get("CHAOS_SEED", "20261120"))
TARGETS = (*EVALUATORS, "results", "scheduler", "nats")
KILLS = 10
CALM, UNDER_FIRE = MODELS[:2]
ROOM = 64
"""Tokens that an answer needs; with fewer every fifth is cut."""
SAMPLED = 120
"""Items of the job that asks three times."""
LATENCY_S = 0.04
"""Of a call under fire: jobs must last until the kills are over."""
DIGEST: Endpoint = {'model."*".digest': "sha256:weights"}
Call = tuple[str, str, int]
"""What asked, the prompt, the seed."""


class Cutting(OpenAIServer):
    """Cuts a fifth of the answers where there is no room, and answers nonsense to every third seed."""

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        cut = self.is_cut("\n\n".join(m["content"] for m in body["messages"])) and body.get("max_tokens", ROOM) < ROOM
        made = super().answer(body, NONSENSE if cut or body.get("seed", 0) % 3 == 2 else text)
        if cut:
            made["choices"][0]["finish_reason"] = "length"
        return made

    @staticmethod
    def is_cut(prompt: str) -> bool:
        return random.Random(prompt).random() < 0.2


@dataclass
class Jobs:
    """One model's jobs, which each take or ask as their names say."""

    source: str
    began: float
    """When the source had ended."""
    rescore: str
    rerun: str
    any_job: str
    thrice: str

    @classmethod
    async def start(cls, world: World, model: str) -> Jobs:
        """The source runs to its end before the others start, all at once."""
        narrow = {"num_predict": ROOM - 1}
        source = await world.submit(model, ["cola"], params=narrow)
        assert (await world.finished(source, 120)).state == job_pb2.Job.STATE_COMPLETED
        began = time.monotonic()
        others = await asyncio.gather(
            world.start(f"/rescore/{source}", {}),
            world.start(f"/rerun/{source}", {"outcomes": ["output_truncated"], "num_predict": ROOM}),
            world.submit(model, ["cola", "rte"], params=narrow, reuse={"any_job": True}),
            world.submit(model, ["rte"], SAMPLED, {"seed": 6, "temperature": 0.7}, repeats=3),
        )
        return cls(source, began, *others)

    def by_name(self) -> Mapping[str, str]:
        return {"rescore": self.rescore, "rerun": self.rerun, "any_job": self.any_job, "thrice": self.thrice}


def calls(world: World, model: str, since: float) -> dict[Call, list[float]]:
    """When each call of the jobs was made, by the job that its parameters tell."""
    found: dict[Call, list[float]] = {}
    for record in world.model.records:
        if record.body["model"] == model and record.at > since:
            body = record.body
            name = "thrice" if "seed" in body else "rerun" if body["max_tokens"] == ROOM else "any_job"
            found.setdefault((name, prompt_of(record), body.get("seed", 0)), []).append(record.at)
    return found


async def shoot(world: World, kills: list[Kill]) -> None:
    """Kills one target after another, each equally often, without waiting until the one before is back. The results
    service comes first, before the new jobs' units have asked it for answers."""
    rng = random.Random(SEED)
    others = [target for target in TARGETS * (KILLS // len(TARGETS)) if target != "results"]
    targets = ["results", *rng.sample([*others, "results"], KILLS - 1)]
    returning = []
    for place, target in enumerate(targets):
        await asyncio.sleep(rng.uniform(0.1, 1.2) if place else 0)
        old = await world.launched.kill(target)
        kills.append(Kill(Shot(target, 0, 0), time.monotonic()))
        returning.append(asyncio.create_task(come_back(world, kills[-1], old)))
    await asyncio.gather(*returning)


@dataclass
class Rescores:
    """Re-scores of one job, one after another."""

    world: World
    source: str
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When each was asked for and when it had ended."""

    async def repeat(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            asked = time.monotonic()
            job_id = await self.world.start(f"/rescore/{self.source}", {})
            assert (await self.world.finished(job_id, 180)).state == job_pb2.Job.STATE_COMPLETED
            self.spans[job_id] = (asked, time.monotonic())


async def figures(world: World, job_id: str) -> dict[str, Any]:
    """What must not depend on kills."""
    body = await world.result(job_id)
    kept = ("performance_data", "score", "outcomes", "reused", "tasks", "item_set", "subset", "incomplete", "averages")
    return {"items": body["progress"]["items_total"], **{name: body[name] for name in kept}}


async def broken(world: World, job_id: str, model_says: Mapping[tuple[str, int], str]) -> list[str]:
    """What of a job under fire is lost, doubled or another item's."""
    items = await world.items(job_id)
    found = []
    counted = Counter((item.task, item.result.item, item.result.repeat) for item in items)
    if doubled := [key for key, count in counted.items() if count > 1]:
        found.append(f"stored twice: {doubled[:3]}")
    if bad := [i for i in items if i.result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR]:
        found.append(f"{len(bad)} items failed, e.g. {bad[0].result.error!r}")
    if wrong := [i for i in items if i.result.response not in (model_says[i.task, i.result.item], NONSENSE)]:
        found.append(f"{len(wrong)} items have another item's answer")
    actions = [event.action for event in await world.events(job_id)]
    return found + ([f"the audit trail is {actions}"] if actions != ACTIONS else [])


async def test_stored_answers_stand_in_for_calls_whatever_is_killed(tmp_path: Path) -> None:
    async with open_world(tmp_path, server=Cutting, endpoint=DIGEST) as world:
        cut = {q.prompt for q in world.questions if q.task == "cola" and Cutting.is_cut(q.prompt)}
        asked = {q.prompt for q in world.questions if q.task == "rte"}
        says = {(q.task, q.item): q.answer for q in world.questions}
        calm = await Jobs.start(world, CALM)
        for job_id in calm.by_name().values():
            assert (await world.finished(job_id, 120)).state == job_pb2.Job.STATE_COMPLETED
        expected = {name: await figures(world, job_id) for name, job_id in calm.by_name().items()}
        undisturbed = calls(world, CALM, calm.began)
        assert {prompt for name, prompt, _ in undisturbed if name == "rerun"} == cut
        assert {prompt for name, prompt, _ in undisturbed if name == "any_job"} == asked
        assert {len(times) for times in undisturbed.values()} == {1}

        kills: list[Kill] = []
        world.model.behaviour.latency_s = LATENCY_S
        jobs = await Jobs.start(world, UNDER_FIRE)
        rescores = Rescores(world, jobs.source)
        runs: dict[str, Run] = {}
        async with AsyncExitStack() as watching:
            for number, (name, job_id) in enumerate(jobs.by_name().items()):
                run = await watching.enter_async_context(job_under_watch(world, number, UNDER_FIRE, job_id))
                run.kills, runs[name] = kills, run
            enough = asyncio.Event()
            rescoring = asyncio.create_task(rescores.repeat(enough))
            await shoot(world, kills)
            enough.set()
            await rescoring
        assert {kill.shot.target for kill in kills} == set(TARGETS)
        # The last sample is the one that saw the job finished.
        met = {name: sum(kill.at < run.samples[-1].at for kill in kills) for name, run in runs.items()}
        spans = [*rescores.spans.values(), (runs["rescore"].submitted, runs["rescore"].samples[-1].at)]
        met["rescore"] = sum(any(start < kill.at < end for start, end in spans) for kill in kills)
        assert min(met.values()) >= 2, f"jobs ended before they were shot at: {met}"

        for name, job_id in [*jobs.by_name().items(), *(("rescore", again) for again in rescores.spans)]:
            assert await broken(world, job_id, says) == [], f"seed {SEED}, {name}"
            assert await figures(world, job_id) == expected[name], f"seed {SEED}, {name}"

        # A re-score calls nobody, a job that takes answers only for what it cannot take: nobody asked anything else.
        made = calls(world, UNDER_FIRE, jobs.began)
        assert made.keys() == undisturbed.keys(), f"seed {SEED}"
        report = []
        for name in ("rerun", "any_job", "thrice"):
            by_kill, unexplained = attributed([times for call, times in made.items() if call[0] == name], kills)
            assert unexplained == 0, f"seed {SEED}, {name}"
            report += [f"{name} {kills[i].shot.target} {calls}" for i, calls in by_kill.items()]
            for i, repeats in by_kill.items():
                assert repeats <= most_repeated(runs[name], kills[i]), f"seed {SEED}, {name}, {kills[i].shot.target}"
        count = len(rescores.spans) + 1
        print(f"seed {SEED}: {count} re-scores; kills met {met}; repeated calls: {', '.join(report) or 'none'}")
