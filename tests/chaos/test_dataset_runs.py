"""5,000 uploaded chats while processes are killed at random: every row back once, with its own answer."""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import chat_lines
from tests.chaos.launched import PROCESSES
from tests.chaos.shooting import plan, report, run_under_fire
from tests.chaos.world import MODELS, World, open_world
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.chaos

ROWS = 5000
KILLS = 8
SEED = int(os.environ.get("CHAOS_SEED", "20261120"))
FASTER = 0.3
"""Of the other tests' latency, as there are more rows."""


async def test_every_row_of_a_dataset_comes_back_once_under_fire(tmp_path: Path) -> None:
    lines = chat_lines.lines(ROWS, MODELS[0])
    async with open_world(tmp_path) as world:
        world.model.behaviour.answer = chat_lines.answer
        world.model.behaviour.latency_s *= FASTER
        job_id = await started(world, chat_lines.jsonl(lines))
        (shots,) = plan(SEED, 1, KILLS, PROCESSES)
        run = await run_under_fire(world, 0, MODELS[0], shots, job_id)
        print(report(SEED, [run]))

        assert run.job.state == job_pb2.Job.STATE_COMPLETED, run.job.reason
        assert not run.job.incomplete
        body = await results(world, job_id)
        assert body["status"] == "completed"
        ids = Counter(row["custom_id"] for row in body["results"])
        assert ids == Counter(line["custom_id"] for line in lines)
        said = {row["custom_id"]: answer_of(row) for row in body["results"]}
        assert said == {line["custom_id"]: chat_lines.answer(chat_lines.prompt(line)) for line in lines}
        sent = Counter(len(times) for times in world.calls(MODELS[0]).values())
        assert sum(sent.values()) == ROWS, "a prompt was never sent"
        print(f"  calls a row: {dict(sent)}")


def answer_of(row: dict[str, Any]) -> str:
    return str(row["response"]["body"]["choices"][0]["message"]["content"])


async def started(world: World, content: bytes) -> str:
    """Uploads the file and starts a run over it; returns the job's id."""
    url = world.launched.page_url
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        sent = await client.post("/admin/datasets/upload", files={"file": ("batch_5k.jsonl", content)})
        assert sent.status_code == 200, sent.text
        assert sent.json()["count"] == ROWS
        body = {
            "model_id": MODELS[0],
            "provider": "stub",
            "dataset_id": sent.json()["dataset_id"],
            "request_id": uuid.uuid4().hex,
        }
        run = await client.post("/admin/benchmarks/run", json=body)
        assert run.status_code == 200, run.text
        return str(uuid.UUID(run.json()["benchmark_id"].removeprefix("bm_")))


async def results(world: World, job_id: str) -> dict[str, Any]:
    """All rows as the document has them, once every service is back."""
    url = f"{world.launched.page_url}/admin/benchmarks/bm_{job_id.replace('-', '')}/results"
    until = time.monotonic() + 120
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        while (answer := await client.get(url)).status_code != 200:
            assert time.monotonic() < until, answer.text
            await asyncio.sleep(0.2)
    return dict(json.loads(answer.text))
