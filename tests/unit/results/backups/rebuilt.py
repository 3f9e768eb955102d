"""Databases that are rebuilt."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from services import bus
from services.results.intake import writes
from services.results.storage.database import Database
from services.results.storage.job_files import JobFiles
from services.results.storage.migrations import open_file
from tests.unit.results.builders import START, answer, batch, event, job, plan, seal
from touchstone.v1 import job_pb2

DATABASE = "touchstone.duckdb"
ITEMS = 300
JOBS = 4
DONE = job_pb2.Job.STATE_COMPLETED
NEVER = (START + timedelta(days=400)).replace(tzinfo=None)


async def fill(folder: Path) -> None:
    """A database of finished jobs, their files beside it."""
    connection = open_file(folder / DATABASE, folder / "jobs")
    for number in range(JOBS):
        name = f"j{number}"
        writes.store_events(connection, [event(f"{number}-1", job(name, plan("t", ITEMS), minute=number))])
        results = [answer(item, response=f"{number} {item} " * 20) for item in range(ITEMS)]
        writes.store_items(connection, [batch(name, "t", results)])
        seal(connection, job(name, plan("t", ITEMS), minute=number))
        done = event(f"{number}-2", job(name, plan("t", ITEMS), minute=number, state=DONE), "completed")
        writes.store_events(connection, [done])
        connection.execute(
            "INSERT INTO annotations VALUES ($n, $j, 't', 0, 0, 1, '', 'note', 'ann', now())",
            {"n": number + 1, "j": name},
        )
    database = Database(connection)
    files = JobFiles(database, folder / "jobs", bus.Room())
    (folder / "jobs").mkdir()
    await files.bring_up_to_date(NEVER)
    await database.close()
