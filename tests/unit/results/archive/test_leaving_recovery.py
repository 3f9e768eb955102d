"""Items that are in the archive alone, when databases are checked, copied, restored and repaired."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from deploy.local.recovery.repair import repair
from deploy.local.settings import LaunchError
from services.results.archive import restoring, versions
from services.results.backups import rebuilding
from services.results.backups.checking import database_faults
from services.results.storage import archived_items
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from tests.unit.results.archive.archived import JOBS, LATER, Archived, copied, items_of, seen

GONE = sorted(JOBS)


async def left(kept: Path, folder: Path) -> tuple[Archived, list[bytes]]:
    """A database whose items have left, and what people saw before."""
    archived = copied(kept, folder)
    whole = items_of(archived.connection)
    await archived.leave()
    assert archived.away() == GONE
    archived.connection.execute("CHECKPOINT")
    return archived, whole


def away(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT job_id FROM archived_items WHERE returned_at IS NULL ORDER BY job_id")
    return [job_id for (job_id,) in rows.fetchall()]


async def reopened(archived: Archived, path: Path) -> Archived:
    """With another database in place of the present one."""
    await archived.close()
    for old in archived.path.parent.glob("touchstone.duckdb*"):
        old.unlink()
    shutil.copyfile(path, archived.path)
    return Archived(archived.folder, archived.place)


async def test_items_that_left_are_no_fault(kept: Path, tmp_path: Path) -> None:
    archived, _ = await left(kept, tmp_path)
    assert list(database_faults(archived.connection)) == []
    assert rebuilding.keep(archived.path, tmp_path / "kept.duckdb")
    archived.connection.execute("DELETE FROM archived_items")
    assert [fault for fault in database_faults(archived.connection) if "0 of 40 answers are stored" in fault]
    await archived.close()


async def test_items_that_the_archive_has_lost_are_named(kept: Path, tmp_path: Path) -> None:
    archived, _ = await left(kept, tmp_path)
    assert list(restoring.lost_items(archived.connection, archived.store)) == []
    file = next((archived.root / "jobs" / "failed").glob("items.*"))
    shutil.rmtree(file.parent)
    (said,) = restoring.lost_items(archived.connection, archived.store)
    assert said.startswith(f"The items of job failed left the database. {file} is missing. If you have a good copy")
    await archived.close()


async def test_a_backup_knows_where_the_items_are(kept: Path, tmp_path: Path) -> None:
    archived, whole = await left(kept, tmp_path)
    backup, fresh, said = tmp_path / "backup.duckdb", tmp_path / "fresh.duckdb", list[str]()
    shutil.copyfile(archived.path, backup)
    nowhere = tmp_path / "nowhere"
    rebuilding.complete(partial(shutil.copyfile, backup), fresh, nowhere, nowhere, None, said.append, archived.store)
    restored = open_file(fresh)
    assert away(restored) == GONE
    restored.close()
    archived = await reopened(archived, fresh)
    assert await archived.database.read(items_of) == whole
    await archived.close()


async def test_items_of_a_backup_from_before_they_left_are_there_again(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    whole = items_of(archived.connection)
    archived.connection.execute("CHECKPOINT")
    before = tmp_path / "before.duckdb"
    shutil.copyfile(archived.path, before)
    await archived.leave()
    archived.connection.execute("CHECKPOINT")
    backup, fresh = tmp_path / "backup.duckdb", tmp_path / "fresh.duckdb"
    shutil.copyfile(archived.path, backup)
    nowhere = tmp_path / "nowhere"
    # The backup has none of the items, and the present database has all of them.
    rebuilding.complete(partial(shutil.copyfile, backup), fresh, before, nowhere, None, lambda _: None)
    restored = open_file(fresh)
    assert away(restored) == []
    assert items_of(restored) == whole
    restored.close()
    await archived.close()


async def test_a_restore_of_the_whole_archive_leaves_them_there_and_of_one_job_brings_it_back(
    kept: Path, tmp_path: Path
) -> None:
    archived, whole = await left(kept, tmp_path)
    await archived.close()
    said: list[str] = []
    rebuilding.add_archived(archived.path, archived.store, said.append)
    rebuilding.add_archived(archived.path, archived.store, said.append, ["failed"])
    assert said == [
        f"0 jobs restored from the archive {archived.place}.",
        f"1 job restored from the archive {archived.place}.",
    ]
    archived = Archived(tmp_path)
    assert archived.away() == [name for name in GONE if name != "failed"]
    assert await archived.database.read(items_of) == whole
    await archived.close()


@pytest.mark.parametrize("with_archive", [True, False])
async def test_a_repair_keeps_what_is_known_of_them(kept: Path, tmp_path: Path, with_archive: bool) -> None:
    archived, whole = await left(kept, tmp_path)
    fresh, said = tmp_path / "fresh.duckdb", list[str]()
    store = archived.store if with_archive else None
    rebuilding.rebuild(archived.path, tmp_path / "jobs", fresh, said.append, store)
    connection = open_file(fresh)
    assert away(connection) == GONE
    assert list(database_faults(connection)) == []
    connection.close()
    archived = await reopened(archived, fresh)
    assert await archived.database.read(items_of) == whole
    await archived.close()


async def test_a_lost_database_gets_everything_from_the_archive(kept: Path, tmp_path: Path) -> None:
    archived, _ = await left(kept, tmp_path)
    archived.connection.execute("DELETE FROM jobs WHERE job_id = 'live'")
    whole = await archived.database.read(seen)
    fresh = tmp_path / "new" / "fresh.duckdb"
    rebuilding.rebuild(tmp_path / "nothing.duckdb", tmp_path / "jobs", fresh, lambda _: None, archived.store)
    connection = open_file(fresh)
    assert seen(connection) == whole
    connection.close()
    await archived.close()


async def test_the_archive_is_not_overwritten_by_a_database_that_does_not_know_of_it(
    kept: Path, tmp_path: Path
) -> None:
    archived, whole = await left(kept, tmp_path)
    for table in ("archived_items", "archived_identities", "archived_jobs"):
        archived.connection.execute(f"DELETE FROM {table}")
    before = archived.files()
    await archived.archive()
    assert archived.files() == before
    assert archived.away() == GONE
    assert await archived.database.read(items_of) == whole
    newest = versions.read(archived.store, "done-1", versions.manifests(archived.manifests("done-1"))[0])
    assert newest.answers == "1.40.0"
    await archived.close()


async def test_a_copy_for_reads_is_made_while_items_are_away(kept: Path, tmp_path: Path) -> None:
    archived, _ = await left(kept, tmp_path)
    archived.moving.mkdir(exist_ok=True)
    await archived.database.copy(archived.moving / "copy.duckdb")
    copy = Database(open_file(archived.moving / "copy.duckdb"))
    assert await copy.read(away) == GONE
    await copy.close()
    await archived.close()


async def test_a_repair_asks_for_the_archive_that_has_items(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    database = tmp_path / "results" / "touchstone.duckdb"
    archived_items.mark(database, "s3://bucket/archive")
    archived_items.mark(database, "s3://bucket/archive")
    with pytest.raises(LaunchError, match=r"repair --archive s3://bucket/archive --state-dir .* delete .*items-in-arc"):
        repair(tmp_path, lambda _: None)


async def test_a_file_next_to_the_database_says_that_items_have_left(kept: Path, tmp_path: Path) -> None:
    archived = copied(kept, tmp_path)
    await archived.leave(LATER.replace(year=2000))
    assert not (tmp_path / "items-in-archive").exists()
    await archived.leave()
    assert (tmp_path / "items-in-archive").read_text() == archived.place
    await archived.close()
