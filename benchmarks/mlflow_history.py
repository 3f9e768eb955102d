"""MLflow's tracking server over SQLite with a tenth of the runs, each with as many metrics, asked by `search_runs`.

Its own calls would take hours to log them, so the rows are written into its tables in SQL, as its store would have.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deploy.local.ports import free_port

RUNS = 100_000
_DAY_MS = 86_400_000
_START_S = 90.0
_CALL_S = 120.0
_FILL = """
PRAGMA synchronous = OFF;
PRAGMA cache_size = -500000;
BEGIN;
INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage, creation_time, last_update_time)
VALUES (1, 'glue', 'mlflow-artifacts:/1', 'active', {start}, {start});
WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < {runs})
INSERT INTO runs
SELECT printf('%08x%024x', n, abs(random())), 'run-' || n, 'UNKNOWN', '', '', 'user-' || (n % 12),
    CASE WHEN n % 25 = 0 THEN 'FAILED' ELSE 'FINISHED' END, {start} + n * {step}, {start} + n * {step} + 300000,
    '', 'active', 'mlflow-artifacts:/1/' || n, 1, NULL
FROM t;
CREATE TEMP TABLE keys AS
WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < 18)
SELECT CASE WHEN n = 0 THEN 'accuracy' ELSE printf('task_%02d', n) END AS key FROM t
UNION ALL SELECT 'f1' UNION ALL SELECT 'score';
INSERT INTO latest_metrics SELECT key, abs(random()) / 9.3e18, end_time, 0, 0, run_uuid FROM keys, runs ORDER BY 1, 6;
INSERT INTO metrics SELECT key, value, timestamp, run_uuid, step, is_nan FROM latest_metrics ORDER BY 1, 3;
INSERT INTO params SELECT 'model', 'model-' || (abs(random()) % 200), run_uuid FROM runs;
INSERT INTO params SELECT 'endpoint', 'endpoint-' || (abs(random()) % 7), run_uuid FROM runs;
INSERT INTO tags SELECT 'mlflow.user', user_id, run_uuid FROM runs;
COMMIT;
ANALYZE;
"""


def measure(folder: Path, environment: Path, *, now: int, days: int, rounds: int) -> Mapping[str, list[float]]:
    """Seconds of each question through its server, asked so often. `now` in seconds since 1970."""
    database = folder / "mlflow.db"
    _write(database, environment, now, days)
    with _server(folder, database, environment) as url:
        since = now * 1000 - 30 * _DAY_MS
        questions = {
            "leaderboard": {"order_by": ["metrics.accuracy DESC"], "max_results": 10},
            "history": {
                "filter": f"attributes.start_time >= {since}",
                "order_by": ["attributes.start_time DESC"],
                "max_results": 20,
            },
            "list": {
                "filter": "attributes.status = 'FINISHED' and params.model = 'model-7'",
                "order_by": ["attributes.start_time DESC"],
                "max_results": 20,
            },
        }
        times: dict[str, list[float]] = {name: [] for name in questions}
        for number in range(rounds + 1):
            for name, question in questions.items():
                started = time.perf_counter()
                found = _search(url, {"experiment_ids": ["1"], **question})
                if number:
                    times[name].append(time.perf_counter() - started)
                assert len(found["runs"]) == question["max_results"]
    return times


def version(environment: Path) -> str:
    done = subprocess.run([environment / "bin" / "mlflow", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def _write(database: Path, environment: Path, now: int, days: int) -> None:
    command = [str(environment / "bin" / "mlflow"), "db", "upgrade", f"sqlite:///{database}"]
    subprocess.run(command, check=True, capture_output=True, timeout=_START_S)
    start, step = now * 1000 - days * _DAY_MS, days * _DAY_MS // RUNS
    with sqlite3.connect(database) as connection:
        connection.executescript(_FILL.format(runs=RUNS, start=start, step=step))
    connection.close()


@contextmanager
def _server(folder: Path, database: Path, environment: Path) -> Iterator[str]:
    port = free_port()
    command = [
        *(str(environment / "bin" / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{database}", "--default-artifact-root", str(folder), "--workers", "1"),
    ]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        _until_ready(url, process)
        yield url
    finally:
        # Its workers are children in its process group.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("MLflow's server did not start") from error
            time.sleep(0.2)


def _search(url: str, question: Mapping[str, object]) -> dict[str, list[object]]:
    request = urllib.request.Request(
        f"{url}/api/2.0/mlflow/runs/search",
        data=json.dumps(question).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_CALL_S) as answer:
        found: dict[str, list[object]] = json.load(answer)
    return found


def median_ms(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: 1e3 * statistics.median(each) for name, each in times.items()}
