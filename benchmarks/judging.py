"""5,000 stored answers judged at an endpoint of 50 ms, against the bare loop over the same requests."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import httpx

from benchmarks import bare, dataset_run, job, report, uploads
from benchmarks.endpoint import MODEL, endpoint
from benchmarks.report import Finding
from tests.stack import API, Stack
from touchstone.v1 import job_pb2

ROWS, CONCURRENCY, ROUNDS = 5_000, 64, 3
RATE = 90.0
"""Percent of the bare loop's rate."""
_WORDS = 60
_WAIT_S = 120.0
_LOOK_S = 0.5
"""Seldom: looks take time from what is measured, which the job itself notes."""
_RUBRIC: dict[str, Any] = {"version": "tone-v1", "criteria": [{"name": "tone"}]}


def judging(folder: Path) -> list[Finding]:
    """In turns. The rate of a judge's job is that of its calls, from when it began to run."""
    path, prompts = folder / "rows.jsonl", folder / "prompts.json"
    uploads.write_lines(path, ROWS, _WORDS)
    rates, shares = [], []
    with endpoint() as url, job.stack(folder / "stack", url, folder, concurrency=CONCURRENCY) as on:
        judged = dataset_run.run(on, uploads.upload(on, path, ROWS))
        for number in range(ROUNDS):
            found = _judge(on, judged)
            if not number:
                prompts.write_text(json.dumps([item.result.prompt for item in on.items(found.job_id)]))
            took = (found.finished_at.ToNanoseconds() - found.started_at.ToNanoseconds()) / 1e9
            loop = bare.bare_loop(url, prompts, CONCURRENCY)
            rates.append(ROWS / took)
            shares.append(100 * loop / took)
            print(f"  round {number + 1}: judged in {took:.2f} s, bare loop {loop:.2f} s", flush=True)
    return [
        report.shown(f"{ROWS:,} answers judged, {CONCURRENCY} at once, median", statistics.median(rates), "answers/s"),
        report.at_least("judging, of the bare loop's rate, median", statistics.median(shares), "%", RATE),
    ]


def _judge(on: Stack, judged: str) -> job_pb2.Job:
    """A judge's job, completed with every judgement read."""
    body = {"config": {"provider": job.ENDPOINT, "model": MODEL}, "rubric": _RUBRIC}
    job_id = judged
    asked = httpx.post(f"{on.url}{API}/judge/{job_id}", json=body, trust_env=False, timeout=_WAIT_S)
    asked.raise_for_status()
    done = on.wait(asked.json()["job_id"], _WAIT_S, every_s=_LOOK_S)
    assert done.state == job_pb2.Job.STATE_COMPLETED, done.reason
    told = httpx.get(f"{on.url}{API}/results/{job_id}/judges", trust_env=False, timeout=_WAIT_S).json()["judges"]
    assert told[0]["judged"] == ROWS, told[0]
    return done
