"""A job that is cancelled in mid-run: answers that were under way are stored, and everybody tells the same number."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

pytestmark = pytest.mark.stack

ROWS = 4000
ON_THE_WAY_S = 3.0
"""For answers that were under way at the end; a busy machine may need longer for all to hear of them."""


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with stub_thread() as stubs:
        yield stubs.start(OpenAIServer(Behaviour(models=("small",), latency_s=0.05)))


@pytest.fixture(scope="module")
def stack(
    provider: OpenAIServer, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stack]:
    endpoint: Endpoint = {"name": "local", "kind": "openai", "base_url": provider.url, "concurrency": 32}
    folder: Path = tmp_path_factory.mktemp("ended")
    with running(Stack(folder, [endpoint], evaluators=2), request) as started:
        started.know_models("local")
        yield started


def started_batch(client: httpx.Client) -> str:
    """A batch over 4,000 rows; returns its id."""
    body = {"model": "small", "messages": [{"role": "user", "content": "hello"}]}
    lines = "".join(
        json.dumps({"custom_id": f"row-{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n"
        for n in range(ROWS)
    )
    file = client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("rows.jsonl", lines)}).json()["id"]
    asked = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return str(client.post("/v1/batches", json=asked).json()["id"])


def told(stack: Stack, client: httpx.Client, batch_id: str, job_id: str) -> dict[str, int]:
    """How many items are done, by who says so."""
    of_job = scheduler_service_pb2.GetJobRequest(job_id=job_id)
    stored = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
    (listed,) = stack.results.ListJobs(results_service_pb2.ResultsServiceListJobsRequest(datasets=True)).jobs
    name = f"bm_{job_id.replace('-', '')}"
    (admin,) = client.get("/admin/benchmarks").json()["benchmarks"]
    batches = [client.get(f"/v1/batches/{batch_id}").json(), *client.get("/v1/batches").json()["data"]]
    files = [batches[0]["output_file_id"], batches[0]["error_file_id"]]
    texts = [client.get(f"/v1/files/{file}/content").text for file in files if file]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    run = [line for line in lines if (line["error"] or {}).get("code") != "batch_cancelled"]
    exported = client.get(f"/api/v1/benchmarking/results/{job_id}/export", params={"kind": "items", "format": "jsonl"})
    shown = re.search(rf"([\d,]+) of {ROWS:,}", touchstone(stack, "status", job_id).stdout)
    assert shown is not None
    return {
        "scheduler": stack.scheduler.GetJob(of_job).job.progress.items_done,
        "results": stack.results.GetJob(stored).job.progress.items_done,
        "tasks": sum(task.items_done for task in stack.results.GetJob(stored).job.progress.tasks),
        "results' list": listed.progress.items_done,
        "admin list": admin["completed"],
        "admin": client.get(f"/admin/benchmarks/{name}").json()["completed"],
        "REST": client.get(f"/api/v1/benchmarking/results/{job_id}").json()["progress"]["items_done"],
        "items": len(stack.items(job_id, 1000)),
        "export": len(exported.text.splitlines()),
        "files": len(run),
        "command": int(shown[1].replace(",", "")),
        **{
            f"batch {place}": one["request_counts"]["completed"] + one["request_counts"]["failed"]
            for place, one in enumerate(batches)
        },
    }


def test_after_a_cancel_in_mid_run_all_tell_what_is_stored_also_after_a_restart(
    stack: Stack, provider: OpenAIServer
) -> None:
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as client:
        batch_id = started_batch(client)
        digits = batch_id.removeprefix("batch_")
        job_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        until(lambda: stack.job(job_id).progress.items_done > ROWS / 10, every_s=0.02)
        ended = stack.scheduler.CancelJob(scheduler_service_pb2.CancelJobRequest(job_id=job_id)).job
        assert ended.state == job_pb2.Job.STATE_CANCELLED
        until(lambda: not provider.in_flight)
        time.sleep(ON_THE_WAY_S)
        until(lambda: stack.settled(job_id))
        counts = told(stack, client, batch_id, job_id)
        stored = counts["items"]
        assert ROWS / 10 < stored < ROWS
        assert set(counts.values()) == {stored}, f"at its end: {ended.progress.items_done}, then {counts}"
        stack.stop()
        stack.start()
        time.sleep(1)
        until(lambda: stack.settled(job_id))
        assert told(stack, client, batch_id, job_id) == counts
