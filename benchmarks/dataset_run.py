"""10,000 uploaded requests from the file to their answers: upload, run, and every row read back, over REST."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks import job, report, uploads
from benchmarks.endpoint import LATENCY_S, MODEL, endpoint
from benchmarks.report import Finding
from tests.stack import Stack

ROWS, CONCURRENCY, ROUNDS = 10_000, 64, 3
_WORDS = 60
_POLL_S = 0.1
_WAIT_S = 120.0


def dataset_run(folder: Path) -> list[Finding]:
    """In turns, over one installation."""
    path = folder / "requests.jsonl"
    uploads.write_lines(path, ROWS, _WORDS)
    walls = []
    with endpoint() as url, job.stack(folder / "stack", url, folder, concurrency=CONCURRENCY) as on:
        for number in range(ROUNDS):
            began = time.perf_counter()
            dataset_id = uploads.upload(on, path, ROWS)
            uploaded = time.perf_counter()
            benchmark_id = run(on, dataset_id)
            done = time.perf_counter()
            rows = _results(on, benchmark_id)
            walls.append(time.perf_counter() - began)
            assert len(rows) == ROWS, len(rows)
            parts = f"upload {uploaded - began:.2f} s, run {done - uploaded:.2f} s"
            print(f"  round {number + 1}: {walls[-1]:.2f} s ({parts})", flush=True)
    limit = ROWS / CONCURRENCY * LATENCY_S
    return [
        report.shown(f"limit of {ROWS:,} calls of 50 ms, {CONCURRENCY} at once", limit, "s"),
        report.at_most(f"{ROWS:,} uploaded requests to all answers read, median", statistics.median(walls), "s", 20),
    ]


def run(on: Stack, dataset_id: str) -> str:
    """Asks all rows. Returns the run's id once it is completed."""
    body = {"model_id": MODEL, "provider": job.ENDPOINT, "dataset_id": dataset_id}
    started = httpx.post(f"{on.url}/admin/benchmarks/run", json=body, trust_env=False)
    started.raise_for_status()
    benchmark_id = str(started.json()["benchmark_id"])
    until = time.monotonic() + _WAIT_S
    while (told := _get(on, f"/admin/benchmarks/{benchmark_id}"))["status"] != "completed":
        assert time.monotonic() < until, told
        time.sleep(_POLL_S)
    return benchmark_id


def _results(on: Stack, benchmark_id: str) -> set[str]:
    """The ids of all rows in the answer."""
    return {row["custom_id"] for row in _get(on, f"/admin/benchmarks/{benchmark_id}/results")["results"]}


def _get(on: Stack, path: str) -> dict[str, Any]:
    answer = httpx.get(on.url + path, trust_env=False, timeout=_WAIT_S)
    answer.raise_for_status()
    return dict(answer.json())
