"""The rows of a job, table by table: copied from the database, and put into one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from services.results.storage import archived_items
from services.results.storage.database import Connection, first_row, with_numbers, writing_elsewhere

ITEMS = "items"
_OF_JOB = "job_id = $job_id"
WHOLE = ("jobs", "seals", "metrics", "answer_texts")
"""Tables of which the rows of a job belong together: those of its newest state."""
ANSWERS = (ITEMS, "answer_texts")
"""Tables that change with the answers alone. The database drops texts of old jobs, and the archive keeps them."""
NUMBERED = ("marks", "annotations", "preferences", "rubrics", "ratings")
"""As in intake.kept_stream: what people said, numbered through all jobs."""
NAMES = "configuration_names"
TABLES: Mapping[str, str] = {
    ITEMS: _OF_JOB,
    **dict.fromkeys(WHOLE, _OF_JOB),
    "events": _OF_JOB,
    "run_sources": _OF_JOB,
    "marks": _OF_JOB,
    "annotations": _OF_JOB,
    "preferences": "list_contains(string_split(jobs, ','), $job_id)",
    "rubrics": "digest IN (SELECT rubric FROM ratings WHERE job_id = $job_id)",
    "ratings": _OF_JOB,
    NAMES: "configuration IN (SELECT configuration FROM seals WHERE job_id = $job_id)",
    "datasets": "id IN (SELECT suite FROM jobs WHERE job_id = $job_id)",
    # Answers of one that is not done are in no finished job.
    "imports": "job_id = $job_id AND done",
}
"""By table, which of its rows are a job's."""
_KEY = ("job_id", "task", "item", '"repeat"')


def answers(connection: Connection, job_id: str) -> str:
    """Which answers of a job are stored, in short: attempt, number, and number of infrastructure errors. An answer is
    replaced only where it is such an error. While they are in the archive alone, they are those that it has, with the
    number of those that came late."""
    found = first_row(
        connection,
        with_numbers(
            "SELECT (SELECT attempt FROM answer_texts WHERE job_id = $job_id), count(*), "
            "count(*) FILTER (outcome = OUTCOME_INFRASTRUCTURE_ERROR) FROM items WHERE job_id = $job_id"
        ),
        {"job_id": job_id},
    )
    assert found is not None
    if (away := archived_items.find(connection, job_id)) is not None:
        return f"{away.answers}+{found[1]}" if found[1] else away.answers
    return ".".join(map(str, found))


def stored(connection: Connection, job_id: str) -> int:
    """The number of a job's items in the database."""
    ((count,),) = connection.execute("SELECT count(*) FROM items WHERE job_id = $id", {"id": job_id}).fetchall()
    return int(count)


def parquet(path: Path, *options: str) -> str:
    """SQL of a Parquet file as a table."""
    name = str(path.absolute()).replace("'", "''")
    return f"read_parquet({', '.join((f'{chr(39)}{name}{chr(39)}', *options))})"


def copy(connection: Connection, job_id: str, table: str, path: Path) -> int:
    """Writes the rows of a job to a Parquet file, none if there are no rows; returns their number. Raises OSError."""
    job, file = (str(text).replace("'", "''") for text in (job_id, path))
    chosen = f"FROM {table} WHERE {TABLES[table].replace('$job_id', f'{chr(39)}{job}{chr(39)}')}"
    ((count,),) = connection.execute(f"SELECT count(*) {chosen}").fetchall()
    if count:
        with writing_elsewhere():
            connection.execute(
                f"COPY ({chosen} ORDER BY rowid) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
            ).fetchall()
    return int(count)


def add_items(target: Connection, taken: str) -> None:
    """Adds answers of `taken`, a relation, as queries/intake/store_items.sql stores them."""
    same = " AND ".join(f"items.{name} = t.{name}" for name in _KEY)
    target.execute(
        with_numbers(
            f"DELETE FROM items USING {taken} t WHERE {same} AND items.outcome = OUTCOME_INFRASTRUCTURE_ERROR "
            "AND (t.outcome <> OUTCOME_INFRASTRUCTURE_ERROR OR t.attempt > items.attempt)"
        )
    )
    target.execute(f"INSERT INTO items BY NAME FROM {taken} ON CONFLICT DO NOTHING")


def add(target: Connection, table: str, taken: str) -> None:
    """Adds rows of a table other than those of WHOLE, where they are not there yet."""
    if table == ITEMS:
        add_items(target, taken)
    elif table in NUMBERED:
        _add_numbered(target, table, taken)
    elif table == NAMES:
        target.execute(
            f"INSERT INTO {NAMES} BY NAME FROM {taken} ON CONFLICT DO UPDATE SET name = excluded.name, "
            "alias = excluded.alias, named_by = excluded.named_by, named_at = excluded.named_at "
            f"WHERE excluded.named_at > {NAMES}.named_at"
        )
    else:
        target.execute(f"INSERT INTO {table} BY NAME FROM {taken} ON CONFLICT DO NOTHING")


def _add_numbered(target: Connection, table: str, taken: str) -> None:
    """A row whose number is taken gets a new one: an older database has gone on without it."""
    columns = [name for name, *_ in target.execute(f"DESCRIBE SELECT * FROM {taken}").fetchall() if name != "number"]
    same = " AND ".join(f'k."{name}" IS NOT DISTINCT FROM t."{name}"' for name in columns)
    target.execute(
        f"INSERT INTO {table} BY NAME SELECT * REPLACE ("
        f"CASE WHEN number IN (SELECT number FROM {table}) THEN row_number() OVER (ORDER BY number) + "
        f"greatest((SELECT max(number) FROM {table}), (SELECT max(number) FROM {taken})) ELSE number END AS number"
        f") FROM {taken} k WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE {same}) ORDER BY number"
    )
