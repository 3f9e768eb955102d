"""A database made of an archive shows what the first one showed; damaged files are named and not read."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from services.errors import UnavailableError
from services.results.archive import restoring, versions
from services.results.backups import rebuilding
from services.results.backups.checking import database_faults
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from tests.unit.results.archive.archived import JOBS, Archived, annotate, copied, fill, seen
from tests.unit.results.builders import START, event, job, plan, run
from touchstone.v1 import job_pb2


class Restored:
    """A database, made of an archive alone or on top of an older one."""

    def __init__(self, archived: Archived, path: Path, only: tuple[str, ...] = ()) -> None:
        self.said: list[str] = []
        rebuilding.add_archived(path, archived.store, self.said.append, only)
        self.connection: Connection = open_file(path)


async def test_a_database_of_the_archive_alone_shows_the_same_byte_for_byte(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    # The job that still runs is in the streams, not in the archive.
    archived.connection.execute("DELETE FROM jobs WHERE job_id = 'live'")
    whole = seen(archived.connection)
    restored = Restored(archived, tmp_path / "new" / "touchstone.duckdb")
    assert seen(restored.connection) == whole
    assert list(database_faults(restored.connection)) == []
    for table in (
        "events",
        "annotations",
        "marks",
        "preferences",
        "ratings",
        "run_scores",
        "current_scores",
        "item_sets",
    ):
        of_live = "WHERE job_id <> 'live'" if table == "events" else ""
        rows = archived.connection.execute(f"FROM {table} {of_live} ORDER BY ALL").fetchall()
        assert restored.connection.execute(f"FROM {table} ORDER BY ALL").fetchall() == rows, table
    # No rating names it.
    assert restored.connection.execute("SELECT digest FROM rubrics").fetchall() == [("r1",)]
    assert restored.said == ["4 jobs restored from the archive " + archived.place + "."]
    assert not (tmp_path / "new" / "archived").exists()
    await archived.database.close()


async def test_an_older_backup_gets_what_came_after_it(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    archived.connection.execute("CHECKPOINT")
    backup = tmp_path / "backup.duckdb"
    shutil.copyfile(archived.path, backup)
    run(archived.connection, job("failed", plan("t", 40), model="failed", minute=2, attempt=2), 38, 2, minute=50)
    run(archived.connection, job("later", plan("t", 40), model="m9", minute=51), 31, 9, minute=51)
    annotate(archived.connection, 2, "done-1", "more")
    gone = job("cancelled", state=job_pb2.Job.STATE_CANCELLED)
    gone.deleted_at.FromDatetime(START)
    await archived.database.write(lambda c: writes.store_events(c, [event("99", gone, "deleted")]))
    await archived.archive()
    there = (*JOBS[:3], "later")
    whole = seen(archived.connection, there)
    fresh, said = tmp_path / "fresh.duckdb", list[str]()
    nowhere = tmp_path / "nowhere"
    rebuilding.complete(partial(shutil.copyfile, backup), fresh, nowhere, nowhere, None, said.append, archived.store)
    restored = open_file(fresh)
    assert seen(restored, there) == whole
    assert restored.execute("SELECT job_id FROM deleted_jobs").fetchall() == [("cancelled",)]
    assert restored.execute("SELECT count(*) FROM items WHERE job_id = 'cancelled'").fetchall() == [(0,)]
    assert said[-1] == f"2 jobs restored from the archive {archived.place}."
    await archived.database.close()


async def test_what_the_database_has_in_a_later_state_stays(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    await archived.database.close()
    connection = open_file(archived.path)
    run(connection, job("failed", plan("t", 40), model="failed", minute=2, attempt=2), 38, 2, minute=50)
    connection.execute("UPDATE items SET response = 'later' WHERE job_id = 'failed'")
    whole = seen(connection)
    connection.close()
    restored = Restored(archived, archived.path)
    assert seen(restored.connection) == whole
    assert restored.said[0].startswith("0 jobs restored")


async def test_entries_that_an_older_database_numbered_otherwise_are_all_there(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    other = open_file(tmp_path / "other.duckdb")
    annotate(other, 1, "another", "of the other database")
    other.close()
    restored = Restored(archived, tmp_path / "other.duckdb")
    notes = restored.connection.execute("SELECT number, note FROM annotations ORDER BY number").fetchall()
    assert notes == [(1, "of the other database"), (2, "note")]
    await archived.database.close()


async def test_chosen_jobs_alone_are_restored(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    restored = Restored(archived, tmp_path / "new.duckdb", only=("done-2", "nothing"))
    assert restored.connection.execute("SELECT job_id FROM jobs").fetchall() == [("done-2",)]
    assert restored.said[0] == f"The archive {archived.place} has no job nothing."
    await archived.database.close()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.stack) for seed in range(1, 6))])
async def test_damaged_files_are_named_and_not_read_and_the_rest_is_restored(
    kept: Path, tmp_path: Path, seed: int
) -> None:
    archived = copied(kept, tmp_path)
    whole = seen(archived.connection, ("done-1",))
    draw = random.Random(seed)
    folder = archived.root / "jobs"
    chosen = {name: draw.choice(sorted((folder / name).iterdir())) for name in JOBS[1:]}
    for name, path in chosen.items():
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content if name != "failed" else content[:-1])
    restored = Restored(archived, tmp_path / "new.duckdb")
    for name, path in chosen.items():
        of_job = [said for said in restored.said if name in said]
        assert of_job == [
            f"{path} is damaged, so nothing is taken from it. If you have a good copy of the file, put it there and "
            "run the command again.",
            f"Nothing of job {name} is restored.",
        ]
    assert restored.said[-1] == "3 jobs could not be restored, as said above."
    tables = ("items", "jobs", "events", "annotations", "ratings")
    assert {
        job_id
        for table in tables
        for (job_id,) in restored.connection.execute(f"SELECT job_id FROM {table}").fetchall()
    } == {"done-1"}
    found = list(restoring.faults(archived.store, tmp_path / "scratch"))
    assert [str(path) in fault for path, fault in zip(sorted(chosen.values()), found, strict=True)] == [True] * 3
    assert seen(restored.connection, ("done-1",))["done-1"] == whole["done-1"]
    await archived.database.close()


async def test_of_a_damaged_version_the_one_before_is_restored(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    annotate(archived.connection, 2, "done-1", "more")
    await archived.archive()
    newest, _ = versions.manifests(archived.manifests("done-1"))
    (archived.root / "jobs" / "done-1" / newest).write_bytes(b"{}")
    restored = Restored(archived, tmp_path / "new.duckdb", only=("done-1",))
    assert newest in restored.said[0]
    assert "version-000001" in restored.said[1]
    assert restored.connection.execute("SELECT note FROM annotations").fetchall() == [("note",)]
    await archived.database.close()


async def test_a_missing_file_is_named(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    (path,) = (archived.root / "jobs" / "failed").glob("items.*")
    path.unlink()
    restored = Restored(archived, tmp_path / "new.duckdb")
    assert restored.said[0].startswith(f"{path} is missing. If you have a good copy")
    await archived.database.close()


async def test_an_archive_of_a_newer_version_is_not_read(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    version = versions.Version("x", 1, "99.0", 9999, "2027-01-01T00:00:00+00:00", "1.0.0", [])
    versions.write(archived.store, version)
    restored = Restored(archived, tmp_path / "new.duckdb", only=("x",))
    assert "was written by Touchstone 99.0, which is newer" in restored.said[0]
    await archived.database.close()


async def test_an_archive_that_cannot_be_reached_says_so(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    shutil.rmtree(archived.root)
    archived.root.write_bytes(b"")
    with pytest.raises(UnavailableError, match="cannot be read"):
        Restored(archived, tmp_path / "new.duckdb")
    await archived.database.close()


async def test_a_repair_takes_from_the_archive_what_is_damaged(tmp_path: Path) -> None:
    archived = Archived(tmp_path)
    fill(archived.connection, 3000)
    await archived.archive()
    archived.connection.execute("DELETE FROM jobs WHERE job_id = 'live'")
    whole = seen(archived.connection)
    await archived.database.close()
    content = bytearray(archived.path.read_bytes())
    content[: len(content) // 2] = bytes(len(content) // 2)
    archived.path.write_bytes(content)
    fresh = tmp_path / "fresh.duckdb"
    rebuilding.rebuild(archived.path, tmp_path / "jobs", fresh, lambda words: None, archived.store)
    assert seen(open_file(fresh)) == whole
