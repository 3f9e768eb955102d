"""A damaged database made again of what can be read."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import duckdb
import pytest

from services import bus
from services.results.backups.checking import database_faults
from services.results.backups.rebuilding import complete, rebuild
from services.results.datasets import index
from services.results.intake import writes
from services.results.intake.writes import Mark
from services.results.storage.database import Database
from services.results.storage.job_files import JobFiles, is_whole
from services.results.storage.migrations import open_file
from tests.unit.results.backups.rebuilt import DONE, ITEMS, JOBS, NEVER
from tests.unit.results.builders import START, event, job
from tests.unit.results.experiments.made import Made


def items_of(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path)) as connection:
        rows = connection.execute("SELECT job_id, item, response FROM items ORDER BY ALL").fetchall()
        # Results that could not be read are computed again when the service starts.
        assert [
            fault for fault in database_faults(connection) if not fault.endswith("the next start computes it")
        ] == []
        return rows


@pytest.mark.parametrize("seed", [0, 5, *(pytest.param(seed, marks=pytest.mark.stack) for seed in range(1, 5))])
def test_every_item_of_finished_jobs_is_back_whatever_bytes_are_wrong(
    tmp_path: Path, finished: Path, seed: int
) -> None:
    whole = items_of(finished)
    assert len(whole) == JOBS * ITEMS
    content = bytearray(finished.read_bytes())
    draw = random.Random(seed)
    for _ in range(1 + seed):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    if seed == 5:
        content[:8192] = bytes(8192)
    finished.write_bytes(content)
    said: list[str] = []
    rebuild(finished, tmp_path / "jobs", tmp_path / "fresh.duckdb", said.append)
    assert [row[:2] for row in items_of(tmp_path / "fresh.duckdb")] == [row[:2] for row in whole]
    assert items_of(tmp_path / "fresh.duckdb") == whole
    assert finished.read_bytes() == content, "the damaged file stays as it is"


def test_all_of_a_readable_database_is_taken(tmp_path: Path, finished: Path) -> None:
    connection = open_file(finished, tmp_path / "jobs")
    experiment = Made(connection)
    connection.close()
    rebuild(finished, tmp_path / "nowhere", tmp_path / "fresh.duckdb", lambda words: None)
    with duckdb.connect(str(finished)) as old, duckdb.connect(str(tmp_path / "fresh.duckdb")) as new:
        for (table,) in old.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            if table not in ("migrations", "positions"):
                rows = old.execute(f"FROM {table} ORDER BY ALL").fetchall()
                assert new.execute(f"FROM {table} ORDER BY ALL").fetchall() == rows, table
        assert index.of_experiment(new, experiment.name) == experiment.dataset


def test_a_missing_database_is_made_of_the_files_alone(tmp_path: Path, finished: Path) -> None:
    finished.unlink()
    rebuild(finished, tmp_path / "jobs", tmp_path / "fresh.duckdb", lambda words: None)
    with duckdb.connect(str(tmp_path / "fresh.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchall() == [(JOBS * ITEMS,)]


async def test_the_file_of_a_deleted_job_is_not_taken_and_goes(tmp_path: Path, finished: Path) -> None:
    connection = open_file(finished, tmp_path / "jobs")
    gone = job("j1", state=DONE)
    gone.deleted_at.FromDatetime(START)
    writes.store_events(connection, [event("9-1", gone, "deleted")])
    connection.execute("CHECKPOINT")
    rebuild(finished, tmp_path / "jobs", tmp_path / "fresh.duckdb", lambda words: None)
    assert {job_id for job_id, *_ in items_of(tmp_path / "fresh.duckdb")} == {"j0", "j2", "j3"}
    database = Database(connection)
    files = JobFiles(database, tmp_path / "jobs", bus.Room())
    files._look()
    await files.bring_up_to_date(NEVER)
    await database.close()
    assert sorted(path.name[:2] for path in (tmp_path / "jobs").glob("*.parquet")) == ["j0", "j2", "j3"]


@pytest.mark.parametrize("source", ["database", "files"])
def test_a_backup_is_completed_with_later_answers_that_are_still_there(
    tmp_path: Path, finished: Path, source: str
) -> None:
    whole = items_of(finished)
    backup, fresh = tmp_path / "backup.duckdb", tmp_path / "fresh.duckdb"
    shutil.copyfile(finished, backup)
    with duckdb.connect(str(backup)) as connection:
        connection.execute("DELETE FROM items WHERE job_id IN ('j2', 'j3')")
        connection.execute("UPDATE items SET outcome = 6, response = 'down' WHERE job_id = 'j1' AND item = 3")
        writes.write_mark(connection, Mark("RESULTS", "then", 2))
    with duckdb.connect(str(finished)) as connection:
        connection.execute(
            "INSERT INTO imports VALUES ('i1', 'ann', 'd', now(), ''::BLOB, true, 0, 0, '', false, NULL)"
        )
    if source == "database":
        (tmp_path / "jobs").rename(tmp_path / "elsewhere")
        (tmp_path / "jobs").mkdir()
    else:
        finished.unlink()
    complete(
        partial(shutil.copyfile, backup),
        fresh,
        finished,
        tmp_path / "jobs",
        Mark("RESULTS", "then", 9),
        lambda words: None,
    )
    assert items_of(fresh) == whole
    with duckdb.connect(str(fresh)) as connection:
        assert writes.read_mark(connection, "RESULTS").sequence == 9
        assert connection.execute("SELECT count(*) FROM imports").fetchall() == [(int(source == "database"),)]


def test_a_backup_of_a_newer_version_is_copied_as_it_is(tmp_path: Path, finished: Path) -> None:
    backup, fresh, said = tmp_path / "backup.duckdb", tmp_path / "fresh.duckdb", list[str]()
    shutil.copyfile(finished, backup)
    with duckdb.connect(str(backup)) as connection:
        connection.execute("INSERT INTO migrations VALUES (9999, now())")
    complete(partial(shutil.copyfile, backup), fresh, finished, tmp_path / "jobs", None, said.append)
    assert fresh.read_bytes() == backup.read_bytes()
    assert "A newer Touchstone wrote" in said[0]


def test_nothing_is_taken_from_a_damaged_file_of_a_job(tmp_path: Path, finished: Path) -> None:
    whole = items_of(finished)
    files = sorted((tmp_path / "jobs").iterdir())
    assert all(map(is_whole, files))
    draw = random.Random(1)
    for file in files:
        content = bytearray(file.read_bytes())
        content[draw.randrange(len(content))] ^= 4
        file.write_bytes(content)
    # One of an earlier version does not say what it was.
    files[2].rename(tmp_path / "jobs" / "j2.1.0.parquet")
    files[3].write_bytes(b"")
    finished.unlink()
    said: list[str] = []
    rebuild(finished, tmp_path / "jobs", tmp_path / "fresh.duckdb", said.append)
    assert [file.name in words for file, words in zip(files[:2] + files[3:], said[1:], strict=False)] == [True] * 3
    assert {row[0] for row in items_of(tmp_path / "fresh.duckdb")} <= {"j2"}
    assert len(whole) == JOBS * ITEMS


async def test_a_disk_that_refuses_copies_does_not_end_the_service(tmp_path: Path, finished: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    connection = open_file(finished, tmp_path / "file")
    connection.execute("UPDATE answer_texts SET dropped_attempt = 1")
    database = Database(connection)
    files = JobFiles(database, tmp_path / "file", bus.Room())
    await files.bring_up_to_date(NEVER)
    with pytest.raises(OSError, match="file"):
        await database.copy(tmp_path / "file" / "copy.duckdb")
    assert not database.lost.is_set()
    assert await database.read(lambda c: c.execute("SELECT count(*) FROM jobs").fetchall()) == [(JOBS,)]
    await database.close()
