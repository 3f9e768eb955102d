"""Keeps a state directory of the version that runs it, killed while jobs are in every phase.

`python -m tests.releases.keep FOLDER` writes `FOLDER/<version>.tar.xz` and `FOLDER/<version>.json`. Run it when a
release is cut; `test_released_state.py` starts the present version on each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from services import __version__, bus
from tests import chat_lines
from tests.chaos import mirror
from tests.chaos.launched import LAUNCHER, SERVICES
from tests.chaos.world import MODELS, World, open_world
from tests.stack import API
from touchstone.v1 import job_pb2

ITEMS, ROWS = 40, 20
SLOW_S = 0.4
"""Of a call, so that jobs stay in their phases for long enough."""


async def keep(folder: Path) -> None:
    """Writes the two files into `folder`."""
    with tempfile.TemporaryDirectory() as work:
        room = open_world(
            Path(work),
            TOUCHSTONE_RUNNING_JOBS="2",
            TOUCHSTONE_REQUESTS_PER_MINUTE="10000",
            # What is kept is read months later: no job may be over its time then, and no message too old.
            TOUCHSTONE_JOB_TIME_S="1000000000",
        )
        async with room as world:
            await _keep_messages(world)
            facts = await _fill(world)
            await _kill(world)
            _write(folder, facts, world.launched.state_dir)


def _write(folder: Path, facts: dict[str, Any], state_dir: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{__version__}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    with tarfile.open(folder / f"{__version__}.tar.xz", "w:xz") as archive:
        archive.add(state_dir, "state", filter=_without_logs)


async def _keep_messages(world: World) -> None:
    connection = await bus.connect(world.launched.nats_url, "keep")
    try:
        for stream in (bus.RESULTS, bus.AUDIT):
            config = (await connection.js.stream_info(stream)).config
            await connection.js.update_stream(config.evolve(max_age=0))
    finally:
        await connection.close()


async def _fill(world: World) -> dict[str, Any]:
    """One job in each phase and one of everything else; returns what was confirmed."""
    world.model.behaviour.latency_s = 0.01
    known = {question.prompt: question.answer for question in world.questions}
    world.model.behaviour.answer = lambda prompt: known.get(prompt) or chat_lines.answer(prompt)
    async with httpx.AsyncClient(base_url=world.launched.page_url, trust_env=False, timeout=30) as http:

        async def send(method: str, path: str, **request: Any) -> Any:
            answer = await http.request(method, path, **request)
            assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
            return answer.json()

        content = chat_lines.jsonl(chat_lines.lines(ROWS, MODELS[0]))
        dataset = await send("POST", "/admin/datasets/upload", files={"file": ("kept.jsonl", content)})
        jobs = {"completed": await _run(world), "over rows": await _run_over(send, dataset["dataset_id"])}
        for job_id in jobs.values():
            await _reach(world, job_id, job_pb2.Job.STATE_COMPLETED)
        mark = {"mark": "invalidated", "reason": "kept"}
        await _until(lambda: _sent(http, "POST", f"{API}/results/{jobs['completed']}/mark", mark))
        listed = await send("GET", f"{API}/results/{jobs['over rows']}/items")
        item = listed["items"][0]
        place = f"{item['task']}/{item['item']}"
        note = {"verdict": "fix", "corrected_answer": "Answer: B", "note": "kept"}
        await send("PUT", f"{API}/results/{jobs['over rows']}/items/{place}/annotation", json=note)
        config = {"provider": "stub", "model": MODELS[0]}
        job = {"project_id": 1, "suite": "glue", "tasks": ["rte"], "config": config}
        body = {"cron": "0 3 29 2 *", "time_zone": "UTC", "label": "kept", "job": job}
        schedule = await send("POST", f"{API}/schedules", json=body)
        webhook = await send("POST", f"{API}/webhooks", json={"url": "http://127.0.0.1:9/kept"})

        world.model.behaviour.latency_s = SLOW_S
        jobs["cancelled"] = await _run(world)
        await _reach(world, jobs["cancelled"], job_pb2.Job.STATE_RUNNING)
        await send("POST", f"{API}/cancel/{jobs['cancelled']}")
        jobs["retried"] = await _run(world)
        await _reach(world, jobs["retried"], job_pb2.Job.STATE_RUNNING)
        await send("POST", f"{API}/cancel/{jobs['retried']}")
        # Its last answers come, and nobody stores them: it stays in its last step.
        jobs["finalizing"] = await _run(world, items=8)
        await _reach(world, jobs["finalizing"], job_pb2.Job.STATE_RUNNING)
        _stop(world, "results")
        await _reach(world, jobs["finalizing"], job_pb2.Job.STATE_FINALIZING)
        jobs["running"] = await _run(world)
        await _reach(world, jobs["running"], job_pb2.Job.STATE_RUNNING)
        await asyncio.sleep(2 * SLOW_S)
        # No evaluator reads the plans of these.
        _stop(world, "evaluator-1", "evaluator-2")
        await send("POST", f"{API}/retry/{jobs['retried']}")
        await _reach(world, jobs["retried"], job_pb2.Job.STATE_PLANNING)
        jobs["pending"] = await _run(world)
    return {
        "version": __version__,
        "items": ITEMS,
        "jobs": jobs,
        "dataset": dataset["dataset_id"],
        "rows": ROWS,
        "annotated": place,
        "schedule": schedule["schedule_id"],
        "webhook": webhook["webhook_id"],
    }


async def _run(world: World, items: int = ITEMS) -> str:
    return await world.submit(MODELS[0], ["rte"], limit=items)


async def _run_over(send: Callable[..., Awaitable[Any]], dataset_id: str) -> str:
    body = {"model_id": MODELS[0], "provider": "stub", "dataset_id": dataset_id}
    return str((await send("POST", "/admin/benchmarks/run", json=body))["job_id"])


async def _sent(http: httpx.AsyncClient, method: str, path: str, body: dict[str, str]) -> bool:
    return (await http.request(method, path, json=body)).is_success


async def _reach(world: World, job_id: str, state: job_pb2.Job.State) -> None:
    async def there() -> bool:
        job = await world.job(job_id)
        return job is not None and job.state == state

    await _until(there)


async def _until(question: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 60
    while not await question():
        assert time.monotonic() < deadline, "not within a minute"
        await asyncio.sleep(0.02)


def _stop(world: World, *names: str) -> None:
    for name in names:
        pid = world.launched.pid(name)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)


async def _kill(world: World) -> None:
    """The launcher takes the others with it."""
    await world.launched.kill(LAUNCHER)
    assert not any(world.launched.pid(name) for name in SERVICES)


def _without_logs(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return None if "/logs" in info.name else info


if __name__ == "__main__":
    assert mirror.TASKS["rte"] >= ITEMS
    asyncio.run(keep(Path(sys.argv[1])))
