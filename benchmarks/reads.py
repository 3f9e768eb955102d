"""How fast pages are drawn over a million jobs with ten million items, and how fast results are read while more come
in.
"""

from __future__ import annotations

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import duckdb
import httpx

from benchmarks import history, mlflow_history, processes, report, sqlite_history
from benchmarks.publisher import publishing
from benchmarks.report import Finding
from services.scheduler.jobs.job import new_job_id
from tests.stack import Stack

JOBS, ITEMS = 1_000_000, 10_000_000
ITEMS_PER_SECOND = 2_000
LIMITS_MS = {
    "leaderboard": 50.0,
    "history": 50.0,
    "list": 50.0,
    "overview": 50.0,
    "item page": 30.0,
    "compare": 100.0,
}
PAGE_MS = 200.0
MEMORY_MB = 1_000
_ROUNDS, _WARM_UP, _PEER_ROUNDS = 40, 3, 5
_PAGE_ROUNDS = 10
_ENDPOINT: Mapping[str, str | int] = {"name": "idle", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
_SAMPLE_S = 0.2


def reads(folder: Path, mlflow: Path | None = None) -> list[Finding]:
    """`mlflow` is a virtual environment that has it; without one it is left out."""
    now = datetime.now(UTC).replace(tzinfo=None)
    seconds = int(now.replace(tzinfo=UTC).timestamp())
    ours, findings = _ours(folder / "stack", now)
    theirs = folder / "plain.sqlite"
    with _told("plain SQLite written"):
        sqlite_history.write(theirs, jobs=JOBS, now=seconds, days=history.DAYS)
    plain = sqlite_history.measure(theirs, since=seconds - 30 * 86_400, rounds=_PEER_ROUNDS)
    theirs.unlink()
    findings += _beside("plain SQLite, in one process", ours, plain)
    if mlflow is not None:
        with _told(f"MLflow with {mlflow_history.RUNS:,} runs written and asked"):
            asked = mlflow_history.measure(folder, mlflow, now=seconds, days=history.DAYS, rounds=_PEER_ROUNDS)
        name = f"MLflow {mlflow_history.version(mlflow)}, {mlflow_history.RUNS:,} runs"
        findings += _beside(name, ours, asked)
    return findings


def _ours(folder: Path, now: datetime) -> tuple[Mapping[str, list[float]], list[Finding]]:
    on = Stack(folder, [_ENDPOINT])
    file = on.state_dir / "results" / "touchstone.duckdb"
    with _told("database written"):
        history.write(file, jobs=JOBS, items=ITEMS, now=now)
    print(f"  {file.stat().st_size / 1e9:.1f} GB", flush=True)
    job_ids = history.newest_runs(file)
    incoming = new_job_id(time.time())
    on.start()
    try:
        pid = processes.pids(on.state_dir)["results"]
        nats_url = (on.state_dir / "nats-url").read_text().strip()
        with on.client() as client:
            questions, pages = _questions(client, job_ids), _pages(client, on.url, job_ids)
            _ask(questions | pages, _WARM_UP)
            drawn = _ask(pages, _PAGE_ROUNDS)
            started = time.monotonic()
            with _resident(pid) as resident, publishing(nats_url, incoming, ITEMS_PER_SECOND) as sent:
                times = _ask(questions, _ROUNDS)
            lasted = time.monotonic() - started
    finally:
        on.stop()
    with duckdb.connect(str(file), read_only=True) as connection:
        stored = connection.execute("SELECT count(*) FROM items WHERE job_id = $job", {"job": incoming}).fetchall()[0][
            0
        ]
    shutil.rmtree(folder)
    findings = [
        report.at_least("items stored while asking", stored / sent[0] * 100, "%", 100),
        report.shown("items that came in meanwhile", sent[0] / lasted, "items/s"),
    ]
    for name, each in times.items():
        milliseconds = sorted(1e3 * value for value in each)
        p95 = milliseconds[int(0.95 * len(milliseconds))]
        findings.append(report.at_most(f"{name}, median", statistics.median(milliseconds), "ms", LIMITS_MS[name]))
        findings.append(report.shown(f"{name}, 95th percentile", p95, "ms"))
    for name, each in drawn.items():
        findings.append(report.at_most(f"{name}, median", 1e3 * statistics.median(each), "ms", PAGE_MS))
    findings.append(report.at_most("memory of the results service, most", max(resident) / 1e6, "MB", MEMORY_MB))
    return times, findings


def _questions(client: httpx.Client, job_ids: tuple[str, str]) -> dict[str, Callable[[], httpx.Response]]:
    compared = {"model_ids": job_ids, "benchmark_suite": "mmlu", "metrics": ["accuracy"]}
    return {
        "leaderboard": lambda: client.get("/leaderboard", params={"suite": "glue", "metric": "accuracy"}),
        "history": lambda: client.get("/history", params={"days": 30}),
        "list": lambda: client.get("/results", params={"suite": "glue", "status": "completed"}),
        "overview": lambda: client.get("/overview", params={"suite": "glue", "days": 30}),
        "item page": lambda: client.get(f"/results/{job_ids[0]}/items", params={"limit": 50}),
        "compare": lambda: client.post("/compare", json=compared),
    }


def _pages(client: httpx.Client, url: str, job_ids: tuple[str, str]) -> dict[str, Callable[[], httpx.Response]]:
    """By name, each page as a browser asks for it."""
    job, both = job_ids[0], ",".join(job_ids)
    addresses = {
        "Overview": "/overview?suite=glue&days=30",
        "Leaderboard of GLUE": "/leaderboard?suite=glue",
        "Leaderboard of MMLU": "/leaderboard?suite=mmlu",
        "Run": "/run?suite=glue",
        "History": "/jobs",
        "History of 30 days": "/jobs?days=30&status=completed",
        "History of models by name": "/jobs?query=model-1",
        "Job": f"/jobs/{job}",
        "items of a job": f"/jobs/{job}/items?items=failures",
        "log of a job": f"/jobs/{job}/log",
        "report of a job": f"/jobs/{job}/report.html",
        "Compare": f"/compare?jobs={both}",
        "choice of runs to compare": "/compare?suite=glue",
        "report of a comparison": f"/compare/report.html?jobs={both}",
        "side by side": f"/side-by-side?jobs={both}&filter=only_right&only=A",
        "Queue": "/queue",
        "Settings": "/settings",
        "Datasets": "/datasets",
        "runs over datasets": "/datasets/runs",
        "palette": "/jump?q=model-1",
    }
    headers = {"accept": "text/html"}
    return {
        f"page {name}": partial(client.get, f"{url}{address}", headers=headers) for name, address in addresses.items()
    }


def _ask(questions: Mapping[str, Callable[[], httpx.Response]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each question, in turns. Raises AssertionError for an answer other than 200."""
    times: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(rounds):
        for name, question in questions.items():
            started = time.perf_counter()
            answer = question()
            times[name].append(time.perf_counter() - started)
            assert answer.status_code == 200, f"{name}: {answer.status_code} {answer.text[:500]}"
    return times


def _beside(peer: str, ours: Mapping[str, list[float]], theirs: Mapping[str, list[float]]) -> list[Finding]:
    findings = []
    for name, each in theirs.items():
        own, other = statistics.median(ours[name]), statistics.median(each)
        findings.append(report.shown(f"{peer}: {name}, median", 1e3 * other, "ms"))
        findings.append(report.shown(f"its time over Touchstone's: {name}", other / own, "times"))
    return findings


@contextmanager
def _resident(pid: int) -> Iterator[list[int]]:
    """Resident bytes of a process, sampled while the block runs."""
    samples, over = [processes.resident_bytes(pid)], threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            samples.append(processes.resident_bytes(pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield samples
    finally:
        over.set()
        sampler.join()


@contextmanager
def _told(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"  {what} in {time.monotonic() - started:.0f} s", flush=True)
