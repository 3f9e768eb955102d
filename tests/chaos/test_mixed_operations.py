"""Bursts of kills while clients do everything that users do."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from services import bus
from tests import chat_lines
from tests.chaos.clients import DATASETS, FINISHED, PATIENCE_S, Client, KnownJob, Memory
from tests.chaos.launched import LAUNCHER, PROCESSES, SERVICES
from tests.chaos.world import World, open_world, prompt_of
from tests.parts import NIGHTLY
from tests.servers.stub import Behaviour
from tests.servers.webhook_receiver import receiving
from tests.stack import API
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

pytestmark = pytest.mark.chaos

KILLS = int(os.environ.get("CHAOS_KILLS", "1000" if NIGHTLY else "30"))
SEED = int(os.environ.get("CHAOS_SEED", "20261122"))
CLIENTS = 4
LATENCY_S = 0.05
END_TIMEOUT_S = 300.0
MOVES = {
    "created": {"planning", "cancelled", "failed"},
    "planning": {"running", "cancelled", "failed"},
    "running": {"finalizing", "cancelled", "failed"},
    "finalizing": {"completed", "cancelled", "failed"},
    "completed": {"retried"},
    "failed": {"retried"},
    "cancelled": {"retried"},
    "retried": {"planning", "cancelled", "failed"},
}


async def test_every_confirmed_operation_holds_after_bursts_of_kills(tmp_path: Path) -> None:
    memory = Memory()
    room = open_world(
        tmp_path,
        TOUCHSTONE_PENDING_PER_USER="100000",
        TOUCHSTONE_REQUESTS_PER_MINUTE="1000000",
        TOUCHSTONE_SCHEDULES_PER_USER="100000",
        TOUCHSTONE_WEBHOOKS_PER_USER="100000",
        TOUCHSTONE_UPLOADS_PER_USER="20",
        TOUCHSTONE_RUNNING_JOBS="6",
    )
    async with receiving() as receiver, room as world:
        behaviour: Behaviour = world.model.behaviour
        behaviour.latency_s = LATENCY_S
        known = {question.prompt: question.answer for question in world.questions}
        behaviour.answer = lambda prompt: known.get(prompt) or chat_lines.answer(prompt)
        url = world.launched.page_url
        clients = [Client(url, SEED * 1000 + number, memory, f"{receiver.url}/ok") for number in range(CLIENTS)]
        over = asyncio.Event()
        working = [asyncio.create_task(client.work(over)) for client in clients]
        try:
            kills = await shoot(world, memory, working)
            over.set()
            async with asyncio.timeout(PATIENCE_S + 60):
                await asyncio.gather(*working)
            print(f"seed {SEED}: kills {dict(kills)}; operations {dict(sorted(memory.done.items()))}")
            wrong = await found_wrong(world, memory, known)
            assert not wrong, "\n".join((f"seed {SEED}", *wrong))
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            for client in clients:
                await client.close()
    assert kills.total() >= KILLS
    assert {"run", "cancel", "mark", "annotate", "upload"} <= memory.done.keys()


async def shoot(world: World, memory: Memory, working: list[asyncio.Task[None]]) -> Counter[str]:
    """Kills one to three processes at about the same time, again and again, also while others still come back."""
    rng, kills = random.Random(SEED), Counter[str]()
    launched = world.launched
    await asyncio.sleep(1)
    while kills.total() < KILLS:
        burst = rng.sample(PROCESSES, rng.choice((1, 1, 2, 3)))
        # A launcher takes all others along, so it is the last of its burst.
        for name in sorted(burst, key=LAUNCHER.__eq__):
            await launched.kill(name)
            kills[name] += 1
            memory.killed_at = time.monotonic()
            if name == LAUNCHER:
                await launched.start()
            await asyncio.sleep(rng.choice((0, 0, rng.uniform(0, 0.3))))
        if rng.random() < 0.6:
            await launched.until_ready()
        await asyncio.sleep(rng.expovariate(1 / 0.7))
        assert launched.pid(LAUNCHER) is not None, f"the launcher gave up:\n{launched.log(LAUNCHER)[-3000:]}"
        for task in working:
            if task.done():
                task.result()
    await launched.until_ready(*SERVICES)
    return kills


async def found_wrong(world: World, memory: Memory, known: dict[str, str]) -> list[str]:
    """Every broken promise as a sentence."""
    jobs = {job_id: await _ended(world, job_id) for job_id in memory.jobs}
    found = [*memory.problems]
    prompts = Counter(prompt_of(record) for record in world.model.records)
    for job_id, job in jobs.items():
        if job is None:
            found.append(f"job {job_id} has not ended {END_TIMEOUT_S:g} s after the last kill")
            continue
        mine = memory.jobs[job_id]
        found += [
            f"job {job_id}: {what}" for what in (*_outcome(job, mine, memory), *_trail(await world.events(job_id)))
        ]
        if job.state == job_pb2.Job.STATE_COMPLETED:
            found += [f"job {job_id}: {what}" for what in await _items(world, job, mine)]
        found += [f"job {job_id}: {what}" for what in await _judged(world, mine)]
    found += await _requests(world, memory)
    found += await _deletions(world, memory)
    found += await _lists(world, memory)
    if never := [prompt for prompt in known if prompts[prompt] > 1000]:
        found.append(f"{len(never)} prompts were asked again and again")
    if condemned := await world.messages(bus.DLQ):
        found.append(f"{condemned} messages were set aside or units condemned")
    if waiting := await world.messages(bus.WORK):
        found.append(f"{waiting} units are left on WORK")
    return found


async def _ended(world: World, job_id: str) -> job_pb2.Job | None:
    """The job when all services say the same of its end, or None when they never do."""
    deadline = time.monotonic() + END_TIMEOUT_S
    request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
    while time.monotonic() < deadline:
        job = await world.job(job_id)
        if job is not None and job_pb2.Job.State.Name(job.state).removeprefix("STATE_").lower() in FINISHED:
            try:
                stored = (await world.results.GetJob(request, timeout=10)).job
            except grpc.aio.AioRpcError:
                stored = job_pb2.Job()
            if (stored.state, stored.attempt) == (job.state, job.attempt):
                return job
        await asyncio.sleep(0.05)
    return None


def _outcome(job: job_pb2.Job, mine: KnownJob, memory: Memory) -> list[str]:
    state = job_pb2.Job.State.Name(job.state).removeprefix("STATE_").lower()
    found = []
    if job.attempt < mine.attempt:
        found.append(f"attempt {mine.attempt} was confirmed, it is at {job.attempt}")
    if mine.confirmed_cancelled and state != "cancelled":
        found.append(f"its cancel was confirmed, it ended as {state}")
    if state == "cancelled" and not mine.may_be_cancelled:
        found.append("nobody cancelled it")
    if state == "failed" and not memory.datasets.get(mine.dataset_id):
        found.append(f"it failed: {job.reason}")
    if state == "completed" and job.incomplete:
        found.append("it is incomplete")
    return found


def _trail(events: list[job_pb2.JobEvent]) -> list[str]:
    actions = [event.action for event in events]
    wrong = [f"{a} then {b}" for a, b in itertools.pairwise(actions) if b not in MOVES.get(a, set())]
    return [f"its audit trail has {wrong}: {actions}"] if wrong or actions[:1] != ["created"] else []


async def _items(world: World, job: job_pb2.Job, mine: KnownJob) -> list[str]:
    items = await world.items(job.job_id)
    keys = Counter((item.task, item.result.item, item.result.repeat) for item in items)
    found = []
    if len(keys) != mine.items:
        found.append(f"{len(keys)} items are stored, {mine.items} were planned")
    if len(items) != len(keys):
        found.append("items are stored twice")
    if bad := [i for i in items if i.result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR]:
        found.append(f"{len(bad)} items were not answered, e.g. {bad[0].result.error!r}")
    if not mine.dataset_id:
        right = {(question.task, question.item): question.answer for question in world.questions}
        if wrong := [i for i in items if i.result.response != right.get((i.task, i.result.item))]:
            found.append(f"{len(wrong)} items have another item's answer")
    return found


async def _judged(world: World, mine: KnownJob) -> list[str]:
    """Marks and annotations that were confirmed."""
    found = []
    if mine.mark:
        request = results_service_pb2.GetJobResultRequest(job_id=mine.job_id)
        result = (await world.results.GetJobResult(request, timeout=30)).result
        if (result.mark, result.mark_reason) != ("invalidated", mine.mark):
            found.append(f"its confirmed mark is {result.mark!r} {result.mark_reason!r}")
    for (task, item), note in mine.notes.items():
        body = await _get(world, f"{API}/results/{mine.job_id}/items/{task}/{item}")
        if (body.get("annotation") or {}).get("note") != note:
            found.append(f"the confirmed note on {task} {item} is {body.get('annotation')}")
    return found


async def _requests(world: World, memory: Memory) -> list[str]:
    """A request made one job, however often it was sent."""
    jobs = [job for job in await world.jobs() if not job.spec.reuse.job_id]
    made: Counter[str] = Counter(job.spec.labels.get("request", "") for job in jobs)
    found = [f"request {label} made {count} jobs" for label, count in made.items() if label and count > 1]
    there = {label for label, job in memory.labels.items() if job and job not in memory.deleted}
    return found + [f"request {label} made no job" for label in there if not made[label]]


async def _deletions(world: World, memory: Memory) -> list[str]:
    """Nothing is left of a job whose deletion was confirmed, but its audit trail."""
    found = []
    for job_id in memory.deleted:
        for path in (f"{API}/results/{job_id}", f"{API}/results/{job_id}/items"):
            async with httpx.AsyncClient(base_url=world.launched.page_url, trust_env=False, timeout=60) as client:
                answer = await client.get(path)
            if answer.status_code != 404:
                found.append(f"job {job_id} was deleted, and {path} answers {answer.status_code}")
        actions = [event.action for event in await world.events(job_id)]
        if actions[-2:] != ["completed", "deleted"] or actions.count("deleted") > 1:
            found.append(f"the audit trail of the deleted job {job_id} is {actions}")
    return found


async def _lists(world: World, memory: Memory) -> list[str]:
    """What was confirmed to be there is there, what was confirmed to be deleted is not."""
    found = []
    for path, rows, key, known in (
        (DATASETS, "datasets", "id", memory.datasets),
        (f"{API}/schedules", "schedules", "schedule_id", memory.schedules),
        (f"{API}/webhooks", "webhooks", "webhook_id", memory.webhooks),
    ):
        there: set[str] = set()
        token = ""
        while True:
            body = await _get(world, path, **({"page_token": token} if token else {}))
            there |= {row[key] for row in body[rows]}
            if not (token := body.get("next_page_token") or ""):
                break
        found += [
            f"{path}: {each} was confirmed and is gone" for each, d in known.items() if not d and each not in there
        ]
        found += [f"{path}: {each} was deleted and is there" for each, d in known.items() if d and each in there]
    return found


async def _get(world: World, path: str, **query: str) -> Any:
    async with httpx.AsyncClient(base_url=world.launched.page_url, trust_env=False, timeout=60) as client:
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text}"
        return answer.json()
