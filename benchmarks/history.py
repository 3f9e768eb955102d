"""A results database with the history of a busy installation, generated in SQL: minutes of work instead of months.

Every row is what the service would have stored, in number, order and width; the figures in them are drawn at random.
What is serialised is the same for all runs of a configuration but for its id, its times and its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks import history_rows
from benchmarks.history_rows import RUNNING_S, SUITES
from services.results.scores.job_result import RULES
from services.results.storage import run_scores
from services.results.storage.migrations import open_file

DAYS = 90
_FAILED, _CANCELLED, _INCOMPLETE = 0.03, 0.01, 0.01
"""Shares of the jobs."""
_CONFIGURATIONS_PER_NAME = 10
_MMLU_SHARE_OF_ITEMS = 0.7
_MEMORY = "5GB"


def write(path: Path, *, jobs: int, items: int, now: datetime) -> None:
    """Makes the database at `path`: so many sealed jobs over 90 days up to `now`, and items of the newest of them.

    `now` is UTC without a zone.
    """
    open_file(path).close()
    with duckdb.connect(str(path), config={"memory_limit": _MEMORY}) as connection:
        _register(connection, "configurations", history_rows.configurations())
        _register(connection, "minutes", history_rows.minutes(now - timedelta(days=DAYS), now))
        _register(connection, "task_metrics", history_rows.task_metrics())
        for statement in _statements(jobs, items, now):
            connection.execute(statement)
        run_scores.fill(connection)
        for number, suite in enumerate(SUITES):
            job = history_rows.job_of(suite, number, 0)
            run_scores.add_item_set(connection, job)
            run_scores.add_weighting(connection, job)
        connection.execute("DROP TABLE made")
        connection.execute("CHECKPOINT")


def newest_runs(path: Path) -> tuple[str, str]:
    """Jobs of the two newest runs of MMLU, whose items are stored."""
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT job_id FROM run_scores WHERE suite = 'mmlu' AND metric = 'score' AND complete AND counts "
            "ORDER BY sealed_at DESC LIMIT 2"
        ).fetchall()
    return rows[0][0], rows[1][0]


def _register(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register(f"{name}_here", table)
    connection.execute(f"CREATE TEMP TABLE {name} AS FROM {name}_here")


def _statements(jobs: int, items: int, now: datetime) -> Iterator[str]:
    start = now - timedelta(days=DAYS)
    step_ms = DAYS * 86_400_000 // jobs
    bounds, total = [], 0.0
    for suite in SUITES:
        total += suite.share
        bounds.append(f"WHEN chance < {total} THEN '{suite.name}'")
    # Everything about a job that other tables are joined by, in the order of creation.
    yield f"""
        CREATE TABLE made AS
        SELECT
            n,
            configuration_number,
            minute,
            TIMESTAMP '{start:%Y-%m-%d %H:%M}' + to_minutes(minute) AS created_at,
            printf('%08x-%04x-7%03x-8%03x-%012x', ms >> 16, ms & 65535, n & 4095, hash(n, 1)::UBIGINT & 4095,
                   hash(n, 2)::UBIGINT & 281474976710655) AS job_id,
            CASE WHEN fate < {_FAILED} THEN 6 WHEN fate < {_FAILED + _CANCELLED} THEN 7 ELSE 5 END::UTINYINT AS state,
            fate > {1 - _INCOMPLETE} AS incomplete
        FROM (
            SELECT
                n,
                n * {step_ms} // 60000 AS minute,
                {int((start - datetime(1970, 1, 1)).total_seconds() * 1000)} + n * {step_ms} AS ms,
                hash(n, 3)::DOUBLE / 18446744073709551616 AS chance,
                hash(n, 4)::DOUBLE / 18446744073709551616 AS fate,
                CASE {" ".join(bounds)} END AS suite
            FROM range({jobs}) t(n)
        )
        JOIN (SELECT suite, min(number) AS first, count(*) AS many FROM configurations GROUP BY suite) USING (suite)
        JOIN (SELECT number AS configuration_number FROM configurations) c
            ON configuration_number = first + (hash(n, 5) % many)::BIGINT
        ORDER BY n
    """
    yield f"""
        INSERT INTO jobs
        SELECT
            job_id, printf('%012d-%08d', 1, n), owner, project_id, suite, endpoint, model, state, 1, created_at,
            job || times || '\\x0A\\x24'::BLOB || job_id::BLOB
                || CASE state WHEN 5 THEN '\\x20\\x05' WHEN 6 THEN '\\x20\\x06' ELSE '\\x20\\x07' END::BLOB,
            baseline, incomplete, created_at + to_seconds({RUNNING_S}), NULL, created_at, false, ''
        FROM made
        JOIN configurations ON number = configuration_number
        JOIN minutes USING (minute)
        ORDER BY n
    """
    yield f"""
        INSERT INTO seals BY NAME
        SELECT
            job_id, 1 AS attempt, created_at + to_seconds({RUNNING_S - 1}) AS sealed_at,
            CASE WHEN incomplete THEN 3 ELSE 0 END AS missing, 0 AS infrastructure_errors,
            NOT incomplete AS complete, suite, 1 AS mode, item_set, subset, configuration,
            result || '\\x0A\\x24'::BLOB || job_id::BLOB AS result,
            CASE WHEN incomplete THEN '3 items have no answer' ELSE '' END AS not_ranked_reason, {RULES} AS rules
        FROM made
        JOIN configurations ON number = configuration_number
        ORDER BY n
    """
    yield """
        INSERT INTO metrics
        SELECT
            job_id, task, metric, place, tasks, n_items, value, 0.01 + value / 100, value - 0.02, value + 0.02,
            value, value, CASE WHEN task = '' THEN 'stratified' ELSE 'wilson' END, '', NULL
        FROM (
            SELECT n, place, job_id, task, metric, tasks, n_items,
                   0.4 + 0.5 * quality + 0.02 * (hash(n, task, drawn)::DOUBLE / 18446744073709551616) AS value
            FROM made
            JOIN configurations ON number = configuration_number
            JOIN task_metrics USING (suite)
        )
        ORDER BY n, task = '', place
    """
    yield f"""
        INSERT INTO configuration_names
        SELECT configuration, 'name-' || number, '', 'admin', TIMESTAMP '{now:%Y-%m-%d %H:%M}'
        FROM configurations
        WHERE number % {_CONFIGURATIONS_PER_NAME} = 0
    """
    yield from _items(items)
    yield f"""
        INSERT INTO answer_texts (job_id, attempt, ended_at, bytes)
        SELECT job_id, 1, created_at + to_seconds({RUNNING_S}), CASE WHEN n >= {jobs} - 10000 THEN 1000000 ELSE 0 END
        FROM made
        ORDER BY n
    """


def _items(items: int) -> Iterator[str]:
    """Of the newest finished runs of MMLU and of GLUE: so many rows together, run by run.

    In one statement: a primary key is made in a third of the time while its table is empty.
    """
    shares = {"mmlu": _MMLU_SHARE_OF_ITEMS, "glue": 1 - _MMLU_SHARE_OF_ITEMS}
    chosen = [
        (suite, max(2, int(items * shares[suite.name]) // suite.items)) for suite in SUITES if suite.name in shares
    ]
    places = ", ".join(
        f"('{suite.name}', {place}, '{task}', {suite.items_of(place)})"
        for suite, _ in chosen
        for place, task in enumerate(suite.tasks)
    )
    runs = " OR ".join(f"(suite = '{suite.name}' AND age <= {count})" for suite, count in chosen)
    yield f"""
        CREATE TEMP TABLE questions AS
        SELECT
            suite, place, task, item, md5(task || item) AS item_hash,
            chr(65 + (hash(task, item) % 4)::INTEGER) AS reference,
            'user: ' || md5(item::VARCHAR || task) || repeat(' which of these is right', 12) AS prompt
        FROM (VALUES {places}) t(suite, place, task, many), LATERAL (SELECT unnest(range(many))::INTEGER AS item)
        ORDER BY suite, place, item
    """
    yield f"""
        INSERT INTO items
        SELECT
            job_id, task, item, 0, 1, item // 16, item, CASE WHEN chance < 0.005 THEN 2 ELSE 1 END,
            CASE WHEN chance < 0.005 THEN '' WHEN is_right THEN reference ELSE 'E' END, reference, '', '',
            item_hash, md5(task), prompt, 'Answer: ' || CASE WHEN is_right THEN reference ELSE 'E' END, '', '1',
            (is_right AND chance >= 0.005)::DOUBLE, NULL, NULL, NULL, 200 + 800 * chance, 180, 3, 'stop', 1, '',
            'last match of “answer: …”', model, 'evaluator-1', NULL, 0, false,
            '{{"max_tokens":32,"temperature":0}}', md5(job_id || item_hash)::UUID, 0.0001, 0, '', '', NULL, NULL
        FROM (
            SELECT *, hash(n, item_hash)::DOUBLE / 18446744073709551616 AS chance,
                hash(item_hash, n)::DOUBLE / 18446744073709551616 < 0.4 + 0.5 * quality AS is_right
            FROM questions
            JOIN (
                SELECT *, row_number() OVER (PARTITION BY suite ORDER BY n DESC) AS age
                FROM made
                JOIN configurations ON number = configuration_number
                WHERE state = 5 AND NOT incomplete
                QUALIFY {runs}
            ) USING (suite)
        )
        ORDER BY n, place, item
    """
