"""The file of a finished job."""

from __future__ import annotations

from pathlib import Path

import duckdb

from services import bus
from services.results.storage.database import Database
from services.results.storage.job_files import JobFiles, is_whole
from services.results.storage.migrations import open_file
from tests.unit.results.backups.rebuilt import JOBS, NEVER, filled


def names(folder: Path) -> list[str]:
    """Of the files of jobs, without their digests."""
    return sorted(file.name.rsplit(".", 2)[0] for file in folder.iterdir())


async def test_the_file_of_a_job_follows_its_attempts_and_dropped_texts(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    folder = tmp_path / "jobs"
    assert names(folder) == [f"j{n}.1.0" for n in range(JOBS)]
    connection = open_file(path, folder)
    connection.execute("UPDATE answer_texts SET dropped_attempt = 1 WHERE job_id = 'j1'")
    connection.execute("UPDATE items SET response = '' WHERE job_id = 'j1'")
    database = Database(connection)
    (folder / "j3.1.0.parquet.new").write_bytes(b"cut short")
    files = JobFiles(database, folder, bus.Room())
    files._look()
    await files.bring_up_to_date(NEVER)
    await database.close()
    assert names(folder) == ["j0.1.0", "j1.1.1", "j2.1.0", "j3.1.0"]
    with duckdb.connect() as reader:
        told = reader.execute(f"SELECT max(response) FROM '{folder}/j1.1.1.*.parquet'").fetchall()
    assert told == [("",)]


async def test_what_stands_in_the_place_of_a_jobs_file_is_replaced(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    folder = tmp_path / "jobs"
    first, second, third, _ = sorted(folder.iterdir())
    first.unlink()
    first.mkdir()
    (first / "x").touch()
    second.write_bytes(b"")
    third.unlink()
    third.symlink_to(third.name)
    (folder / "j3.1.0.parquet.new").mkdir()
    database = Database(open_file(path, folder))
    files = JobFiles(database, folder, bus.Room())
    files._look()
    await files.bring_up_to_date(NEVER)
    await database.close()
    assert names(folder) == [f"j{n}.1.0" for n in range(JOBS)]
    assert all(file.is_file() and is_whole(file) for file in folder.iterdir())
