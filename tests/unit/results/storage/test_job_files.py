"""The file of a finished job."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from services import bus
from services.results.storage import job_files
from services.results.storage.database import Connection, Database
from services.results.storage.job_files import JobFiles, is_whole
from services.results.storage.migrations import open_file
from tests.unit.results.backups.rebuilt import JOBS, NEVER


def names(folder: Path) -> list[str]:
    """Of the files of jobs, without their digests."""
    return sorted(file.name.rsplit(".", 2)[0] for file in folder.iterdir())


async def test_the_file_of_a_job_follows_its_attempts_and_dropped_texts(tmp_path: Path, finished: Path) -> None:
    folder = tmp_path / "jobs"
    assert names(folder) == [f"j{n}.1.0" for n in range(JOBS)]
    connection = open_file(finished, folder)
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


async def test_only_days_on_which_something_has_changed_are_looked_at(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jobs"
    connection = open_file(finished, folder)
    connection.execute("UPDATE answer_texts SET ended_at = ended_at + INTERVAL 1 DAY WHERE job_id > 'j1'")
    database = Database(connection)
    looked_at: list[datetime] = []
    wanted = job_files._wanted

    def noted(connection: Connection, day: datetime, ended_by: datetime) -> list[tuple[str, str]]:
        looked_at.append(day)
        return wanted(connection, day, ended_by)

    async def looked(change: str = "") -> int:
        """How many days are looked at after a change."""
        if change:
            await database.write(lambda c: c.execute(change))
        looked_at.clear()
        await files.bring_up_to_date(NEVER)
        return len(looked_at)

    monkeypatch.setattr(job_files, "_wanted", noted)
    files = JobFiles(database, folder, bus.Room())
    files._look()
    assert await looked() == 2
    assert await looked() == 0
    assert await looked("UPDATE answer_texts SET dropped_attempt = 1 WHERE job_id = 'j0'") == 1
    assert await looked("UPDATE answer_texts SET attempt = 2 WHERE job_id = 'j3'") == 1
    assert await looked("INSERT INTO deleted_jobs VALUES ('j2', 'ann', 'ann', now())") == 0
    await database.close()
    assert names(folder) == ["j0.1.1", "j1.1.0", "j3.2.0"]


async def test_the_newest_jobs_come_first_where_many_files_are_missing(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jobs"
    for file in folder.iterdir():
        file.unlink()
    connection = open_file(finished, folder)
    connection.execute("UPDATE answer_texts SET ended_at = ended_at + INTERVAL 1 DAY WHERE job_id = 'j1'")
    database = Database(connection)
    files = JobFiles(database, folder, bus.Room())
    written: list[str] = []
    write = files._write

    async def noted(job_id: str, name: str) -> None:
        written.append(job_id)
        await write(job_id, name)

    monkeypatch.setattr(files, "_write", noted)
    with monkeypatch.context() as round_over:
        round_over.setattr(job_files, "_ROUND_S", -1.0)
        await files.bring_up_to_date(NEVER)
    assert written == []
    await files.bring_up_to_date(NEVER)
    await database.close()
    assert written[0] == "j1"
    assert sorted(written) == [f"j{n}" for n in range(JOBS)]
    assert names(folder) == [f"j{n}.1.0" for n in range(JOBS)]


async def test_what_stands_in_the_place_of_a_jobs_file_is_replaced(tmp_path: Path, finished: Path) -> None:
    folder = tmp_path / "jobs"
    first, second, third, _ = sorted(folder.iterdir())
    first.unlink()
    first.mkdir()
    (first / "x").touch()
    second.write_bytes(b"")
    third.unlink()
    third.symlink_to(third.name)
    (folder / "j3.1.0.parquet.new").mkdir()
    database = Database(open_file(finished, folder))
    files = JobFiles(database, folder, bus.Room())
    files._look()
    await files.bring_up_to_date(NEVER)
    await database.close()
    assert names(folder) == [f"j{n}.1.0" for n in range(JOBS)]
    assert all(file.is_file() and is_whole(file) for file in folder.iterdir())


async def test_files_wait_while_answers_are_stored_but_not_for_ever(
    new_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(open_file(new_path))
    files = JobFiles(database, tmp_path / "jobs", bus.Room())
    rounds: list[int] = []

    async def noted(ended_by: datetime) -> None:
        rounds.append(database.version)

    monkeypatch.setattr(files, "bring_up_to_date", noted)
    monkeypatch.setattr(job_files, "_CHECK_S", 0.01)
    running = asyncio.create_task(files.run())

    async def after(rounds_more: int, *, storing: bool) -> None:
        async with asyncio.timeout(60):
            wanted = len(rounds) + rounds_more
            while len(rounds) < wanted:
                if storing:
                    database.version += 1
                await asyncio.sleep(0)

    await after(2, storing=False)
    seen = len(rounds)
    for _ in range(1000):
        database.version += 1
        await asyncio.sleep(0.0001)
    assert len(rounds) <= seen + 1
    monkeypatch.setattr(job_files, "_LATEST_S", 0.05)
    await after(2, storing=False)
    await after(3, storing=True)
    running.cancel()
    await database.close()
