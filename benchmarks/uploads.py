"""Files uploaded over REST: how long it takes, and what the processes hold meanwhile."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks import job, processes, report
from benchmarks.endpoint import MODEL, endpoint
from benchmarks.report import Finding
from tests.stack import Stack

LINES, ROUNDS = 50_000, 5
LARGE_LINES = 1_000_000
_WORDS, _LARGE_WORDS = 60, 180
_SAMPLE_S = 0.05
_WAIT_S = 600.0


def uploads(folder: Path) -> list[Finding]:
    """50,000 batch lines, in turns; then 1,000,000 of 1 GB."""
    usual, large = folder / "usual.jsonl", folder / "large.jsonl"
    write_lines(usual, LINES, _WORDS)
    walls, grown = [], []
    with endpoint() as url, job.stack(folder / "stack", url, folder, concurrency=1) as on:
        upload(on, usual, LINES)
        for number in range(ROUNDS):
            wall, more = _measured(on, usual, LINES)
            walls.append(wall)
            grown.append(more)
            print(f"  round {number + 1}: {wall:.2f} s, {more / 1e6:.0f} MB more memory", flush=True)
        size = write_lines(large, LARGE_LINES, _LARGE_WORDS)
        wall, more = _measured(on, large, LARGE_LINES)
    print(f"  {LARGE_LINES:,} lines of {size / 1e9:.2f} GB: {size / 1e6 / wall:.0f} MB a second")
    return [
        report.at_most(f"POST upload of {LINES:,} lines to stored, median", statistics.median(walls), "s", 5),
        report.at_most("memory of all processes, growth meanwhile, most", max(grown) / 1e6, "MB", 100),
        report.shown(f"POST upload of {LARGE_LINES:,} lines, {size / 1e9:.2f} GB", wall, "s"),
        report.at_most("memory of all processes, growth meanwhile", more / 1e6, "MB", 256),
    ]


def write_lines(path: Path, lines: int, words: int) -> int:
    """OpenAI batch lines, no two with equal messages; how many bytes."""
    filler = " ".join(f"word{number}" for number in range(words))
    with path.open("w") as file:
        for number in range(lines):
            messages = [
                {"role": "system", "content": "Answer with one word."},
                {"role": "user", "content": f"Question {number}: {filler}?"},
            ]
            body = {"model": MODEL, "messages": messages, "max_tokens": 32, "temperature": 0}
            line = {"custom_id": f"request-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
            file.write(json.dumps(line) + "\n")
    return path.stat().st_size


def _measured(on: Stack, path: Path, lines: int) -> tuple[float, int]:
    """Seconds, and the bytes that the stack's processes and their children held more than before."""
    with _grown(list(processes.pids(on.state_dir).values())) as grown:
        began = time.perf_counter()
        dataset_id = upload(on, path, lines)
        wall = time.perf_counter() - began
    httpx.delete(f"{on.url}/admin/datasets/{dataset_id}", timeout=_WAIT_S, trust_env=False).raise_for_status()
    return wall, grown[0]


def upload(on: Stack, path: Path, lines: int, scorer: str = "exact_match") -> str:
    """Returns the dataset's id. Raises AssertionError unless every line is a row."""
    with path.open("rb") as file:
        answer = httpx.post(
            f"{on.url}/admin/datasets/upload",
            data={"scorer": scorer},
            files={"file": (path.name, file)},
            timeout=_WAIT_S,
            trust_env=False,
        )
    answer.raise_for_status()
    told = answer.json()
    assert told["count"] == lines, told
    return str(told["dataset_id"])


@contextmanager
def _grown(parents: list[int]) -> Iterator[list[int]]:
    """The most resident bytes of processes and their children while the block runs, over those at its start."""
    before = processes.resident_with_children(parents)
    most, over = [0], threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            most[0] = max(most[0], processes.resident_with_children(parents) - before)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield most
    finally:
        over.set()
        sampler.join()
