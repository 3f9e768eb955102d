"""The same rows in a plain SQLite schema, as one would write it: tables of jobs, metrics and items, with indexes.

Asked in this process, without a server. It keeps no blobs, and items of a few runs only: a lookup by the primary key
takes as long among millions.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_RUNS_WITH_ITEMS = 20
_ITEMS = 14_042
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -500000;
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY, job_id TEXT NOT NULL, owner TEXT NOT NULL, project_id INTEGER NOT NULL,
    suite TEXT NOT NULL, model TEXT NOT NULL, endpoint TEXT NOT NULL, configuration TEXT NOT NULL,
    state TEXT NOT NULL, complete INTEGER NOT NULL, created_at INTEGER NOT NULL, finished_at INTEGER NOT NULL
);
CREATE TABLE metrics (
    job_id TEXT NOT NULL, task TEXT NOT NULL, metric TEXT NOT NULL, n INTEGER NOT NULL,
    mean REAL, stderr REAL, low REAL, high REAL,
    PRIMARY KEY (job_id, task, metric)
) WITHOUT ROWID;
CREATE TABLE items (
    job_id TEXT NOT NULL, task TEXT NOT NULL, item INTEGER NOT NULL, outcome INTEGER NOT NULL, correct REAL,
    prediction TEXT NOT NULL, reference TEXT NOT NULL, prompt TEXT NOT NULL, response TEXT NOT NULL,
    PRIMARY KEY (job_id, task, item)
) WITHOUT ROWID;
"""
_COUNT = "WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < {})"
_FILL = f"""
{_COUNT.format("{jobs}")}
INSERT INTO jobs
SELECT n, printf('%08x-%04x-7000-8000-%012x', n / 16, n % 65536, abs(random()) % 281474976710656),
    'user-' || (c % 12), c % 20, suite, 'model-' || c, 'endpoint-' || (c % 7), printf('%s-%032x', suite, c),
    CASE WHEN n % 25 = 0 THEN 'failed' ELSE 'completed' END, n % 100 <> 1,
    {{start}} + n * {{step}}, {{start}} + n * {{step}} + 300
FROM (
    SELECT n, abs(random()) % 200 AS c,
        CASE WHEN n % 20 < 13 THEN 'glue' WHEN n % 20 < 16 THEN 'superglue' WHEN n % 20 < 19 THEN 'medical'
            ELSE 'mmlu' END AS suite
    FROM t
);
INSERT INTO metrics
SELECT job_id, task, metric, 1000, abs(random()) / 9.3e18, 0.01, 0.4, 0.6
FROM jobs, (
    WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < 18)
    SELECT CASE WHEN n = 0 THEN '' ELSE printf('task-%02d', n) END AS task, 'accuracy' AS metric FROM t
    UNION ALL SELECT '', 'f1' UNION ALL SELECT '', 'score'
    ORDER BY task, metric
)
ORDER BY number;
CREATE INDEX jobs_by_time ON jobs (created_at);
CREATE INDEX jobs_by_suite ON jobs (suite, state, created_at);
CREATE INDEX jobs_by_configuration ON jobs (suite, state, complete, configuration, finished_at, number);
{_COUNT.format("{items}")}
INSERT INTO items
SELECT job_id, printf('task-%02d', n / 247), n % 247, 1, abs(random()) % 10 < 7, 'A', 'A',
    'user: ' || hex(randomblob(16)) || replace(printf('%12c', 'x'), 'x', ' which of these is right'), 'Answer: A'
FROM (SELECT job_id FROM jobs WHERE suite = 'mmlu' ORDER BY created_at DESC LIMIT {{runs}}), t;
ANALYZE;
"""


def write(path: Path, *, jobs: int, now: int, days: int) -> None:
    """`now` in seconds since 1970."""
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCHEMA)
        start, step = now - days * 86_400, max(1, days * 86_400 // jobs)
        text = _FILL.format(jobs=jobs, items=_ITEMS, runs=_RUNS_WITH_ITEMS, start=start, step=step)
        connection.executescript(f"BEGIN;{text}COMMIT;")
    connection.close()


def measure(path: Path, *, since: int, rounds: int) -> Mapping[str, list[float]]:
    """Seconds of each question, asked so often. `since` is where the last thirty days begin."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA cache_size = -500000")
    runs = [
        job_id
        for (job_id,) in connection.execute(
            "SELECT job_id FROM jobs WHERE suite = 'mmlu' ORDER BY created_at DESC LIMIT 2"
        )
    ]

    def ask(*statements: tuple[str, tuple[object, ...]]) -> Callable[[], object]:
        return lambda: [connection.execute(text, values).fetchall() for text, values in statements]

    recent = "FROM jobs WHERE created_at >= ?"
    completed = "FROM jobs WHERE suite = 'glue' AND state = 'completed'"
    questions = {
        "leaderboard": ask(
            (
                "SELECT model, mean, runs FROM (SELECT job_id, model, max(finished_at), count(*) AS runs "
                f"{completed} AND complete = 1 GROUP BY configuration) JOIN metrics USING (job_id) "
                "WHERE task = '' AND metric = 'accuracy' ORDER BY mean DESC LIMIT 10",
                (),
            )
        ),
        "history": ask(
            (f"SELECT * {recent} ORDER BY created_at DESC LIMIT 20", (since,)), (f"SELECT count(*) {recent}", (since,))
        ),
        "list": ask(
            (f"SELECT * {completed} ORDER BY created_at DESC LIMIT 20", ()), (f"SELECT count(*) {completed}", ())
        ),
        "overview": ask(
            (f"SELECT state, count(*), count(DISTINCT model) {recent} AND suite = 'glue' GROUP BY state", (since,)),
            (
                "SELECT avg(mean), count(mean) FROM "
                f"(SELECT job_id {recent} AND suite = 'glue' AND state = 'completed') "
                "JOIN metrics USING (job_id) WHERE task = '' AND metric = 'accuracy'",
                (since,),
            ),
        ),
        "item page": ask(
            ("SELECT * FROM items WHERE job_id = ? ORDER BY task, item LIMIT 50", (runs[0],)),
            ("SELECT count(*), sum(correct), sum(outcome = 2) FROM items WHERE job_id = ?", (runs[0],)),
        ),
        "compare": ask(
            (
                "SELECT a.task, count(*), sum(a.correct > b.correct), sum(a.correct < b.correct) FROM items a "
                "JOIN items b USING (task, item) WHERE a.job_id = ? AND b.job_id = ? GROUP BY a.task",
                (runs[0], runs[1]),
            )
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in questions}
    for number in range(rounds + 1):
        for name, question in questions.items():
            started = time.perf_counter()
            question()
            if number:
                times[name].append(time.perf_counter() - started)
    connection.close()
    return times
