"""Rows with tools and expected calls against rows of text, in one installation: run, scored, shown, compared,
exported."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from benchmarks import dataset_run, job, report, uploads
from benchmarks.endpoint import ANSWER, CALL, endpoint
from benchmarks.report import Finding
from tests.stack import Stack

ROWS, CONCURRENCY, ROUNDS = 5_000, 64, 5
MOST = 1.1
_WORDS = 60
_WAIT_S = 120.0
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "The weather at a place.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
                "required": ["city"],
            },
        },
    }
    for name in ("weather", "forecast", "climate")
]


def tool_calls(folder: Path) -> list[Finding]:
    """In turns, so that whatever else the machine does meets both."""
    kinds: dict[str, Callable[[int], dict[str, Any]]] = {
        "text": lambda number: {"reference": ANSWER.removeprefix("Answer: ") if number % 2 else "negative"},
        "tool calls": lambda number: {"tools": _TOOLS, "reference": _expected(number)},
    }
    scorers = {"text": "exact_match", "tool calls": "tool_calls"}
    walls: dict[str, list[float]] = {kind: [] for kind in kinds}
    uploaded: dict[str, list[float]] = {kind: [] for kind in kinds}
    with endpoint() as url, job.stack(folder / "stack", url, folder, concurrency=CONCURRENCY) as on:
        for number in range(-1, ROUNDS):
            for kind, more in kinds.items():
                path = folder / "rows.jsonl"
                _write(path, f"{kind} {number}", more)
                wall, parts = _round(on, path, scorers[kind])
                if number >= 0:
                    walls[kind].append(wall)
                    uploaded[kind].append(parts["upload"])
                shown = ", ".join(f"{part} {took:.2f}" for part, took in parts.items())
                print(f"  {'round ' + str(number + 1) if number >= 0 else 'warm-up'}, {kind}: {wall:.2f} s ({shown})")
    ratios = [calls / text for text, calls in zip(walls["text"], walls["tool calls"], strict=True)]
    return [
        *(
            report.shown(f"{kind}: upload, median of {ROUNDS}", statistics.median(uploaded[kind]), "s")
            for kind in kinds
        ),
        *(report.shown(f"{kind}: median of {ROUNDS}", statistics.median(walls[kind]), "s") for kind in kinds),
        report.at_most("tool calls to text, median of the rounds", statistics.median(ratios), "", MOST),
    ]


def _expected(number: int) -> list[dict[str, Any]]:
    """Right for every second row."""
    arguments = json.loads(CALL["arguments"])
    return [{"name": CALL["name"], "arguments": arguments if number % 2 else {**arguments, "days": 9}}]


def _write(path: Path, seed: str, more: Callable[[int], dict[str, Any]]) -> None:
    uploads.write_lines(path, ROWS, _WORDS)
    lines = []
    for number, line in enumerate(path.read_text().splitlines()):
        row = json.loads(line)
        body = {"custom_id": row["custom_id"], "messages": row["body"]["messages"], "seed_of_file": seed}
        lines.append(json.dumps(body | more(number)))
    path.write_text("\n".join(lines) + "\n")


def _round(on: Stack, path: Path, scorer: str) -> tuple[float, dict[str, float]]:
    """Seconds for all of it, and for each part."""
    marks = [("", time.perf_counter())]

    def done(part: str) -> None:
        marks.append((part, time.perf_counter()))

    dataset_id = uploads.upload(on, path, ROWS, scorer=scorer)
    done("upload")
    runs = [dataset_run.run(on, dataset_id) for _ in range(2)]
    done("two runs")
    for run in runs:
        body = _get(on, f"/api/v1/benchmarking/results/{run}").json()
        ((metrics,),) = [tasks.values() for tasks in body["performance_data"].values()]
        assert [one["mean"] for one in metrics.values() if not one.get("beside")] == [0.5], metrics
        assert bool(body["fields"]) == (scorer == "tool_calls"), body["fields"]
        _get(on, f"/jobs/{run}")
        _get(on, f"/api/v1/benchmarking/results/{run}/items?limit=200")
    done("show")
    compared = {"model_ids": runs, "benchmark_suite": dataset_id}
    httpx.post(
        f"{on.url}/api/v1/benchmarking/compare", json=compared, trust_env=False, timeout=_WAIT_S
    ).raise_for_status()
    _get(on, f"/api/v1/benchmarking/side-by-side?job_ids={runs[0]},{runs[1]}")
    _get(on, f"/side-by-side?jobs={runs[0]},{runs[1]}")
    done("compare")
    for format in ("jsonl", "csv"):
        assert _get(on, f"/api/v1/benchmarking/results/{runs[0]}/export?format={format}").text
    done("export")
    took = {part: end - begun for (_, begun), (part, end) in itertools.pairwise(marks)}
    return marks[-1][1] - marks[0][1], took


def _get(on: Stack, path: str) -> httpx.Response:
    answer = httpx.get(on.url + path, trust_env=False, timeout=_WAIT_S, follow_redirects=True)
    answer.raise_for_status()
    return answer
