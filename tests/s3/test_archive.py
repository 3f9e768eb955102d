"""An archive in an S3-compatible store."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from services.errors import InvalidRequestError, UnavailableError
from services.results.backups import rebuilding
from services.results.intake import writes
from services.results.storage.migrations import open_file
from services.results.stores.store import open_store, read_bytes, write_bytes
from tests.s3.server import BUCKET, KEYS, S3Server
from tests.unit.results.archive.archived import JOBS, Archived, fill, seen
from tests.unit.results.builders import START, event, job
from tests.waiting import until
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.s3
PLACE = f"s3://{BUCKET}/archive"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    made = S3Server(tmp_path)
    made.start()
    yield made
    made.stop()


def test_a_write_that_fails_leaves_no_object(server: S3Server) -> None:
    store = open_store(PLACE, server.url)
    with suppress(ValueError), store.create("a/b") as file:
        file.write(b"half")
        raise ValueError
    assert store.names("a") == []
    write_bytes(store, "a/b", b"whole" * 3_000_000)
    assert (store.names("a"), store.folders("")) == (["b"], ["a"])
    assert read_bytes(store, "a/b") == b"whole" * 3_000_000
    with pytest.raises(FileNotFoundError):
        read_bytes(store, "a/c")
    store.remove_folder("a")
    store.remove_folder("nothing")
    assert server.objects("archive/a") == {}


def test_a_bucket_that_is_missing_is_not_an_empty_archive(server: S3Server, tmp_path: Path) -> None:
    store = open_store("s3://nobody-made-it/archive", server.url)
    with pytest.raises(UnavailableError, match="There is no bucket nobody-made-it"):
        rebuilding.add_archived(tmp_path / "new.duckdb", store, lambda words: None)
    with pytest.raises(InvalidRequestError):
        open_store("s3://key:secret@bucket", server.url)


async def test_a_database_of_the_archive_alone_shows_the_same_byte_for_byte(server: S3Server, tmp_path: Path) -> None:
    archived = Archived(tmp_path, PLACE, server.url)
    fill(archived.connection)
    await archived.archive()
    archived.connection.execute("DELETE FROM jobs WHERE job_id = 'live'")
    whole = seen(archived.connection)
    path = tmp_path / "new" / "touchstone.duckdb"
    await asyncio.to_thread(rebuilding.add_archived, path, archived.store, lambda words: None)
    assert seen(open_file(path)) == whole
    await archived.database.close()


async def test_a_deleted_job_leaves_no_object_and_damaged_ones_are_named(server: S3Server, tmp_path: Path) -> None:
    archived = Archived(tmp_path, PLACE, server.url)
    fill(archived.connection)
    await archived.archive()
    gone = job("done-1", state=job_pb2.Job.STATE_COMPLETED)
    gone.deleted_at.FromDatetime(START)
    await archived.database.write(lambda c: writes.store_events(c, [event("99", gone, "deleted")]))
    await archived.archive()
    objects = server.objects("archive")
    assert [name for name in objects if "done-1" in name] == ["deleted/done-1.json"]
    (items,) = (name for name in objects if name.startswith("jobs/failed/items."))
    server.put(f"archive/{items}", objects[items][:-1] + bytes([objects[items][-1] ^ 1]))
    said: list[str] = []
    path = tmp_path / "new.duckdb"
    await asyncio.to_thread(rebuilding.add_archived, path, archived.store, said.append)
    assert said[0].startswith(f"{PLACE}/{items} is damaged, so nothing is taken from it.")
    restored = open_file(path)
    assert restored.execute("SELECT job_id FROM jobs ORDER BY 1").fetchall() == [("cancelled",), ("done-2",)]
    assert restored.execute("SELECT count(*) FROM items WHERE job_id = 'failed'").fetchall() == [(0,)]
    await archived.database.close()


async def test_a_store_that_is_away_loses_nothing_and_no_key_is_logged(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("services.results.archive.archiving._LOOK_S", 0.05)
    monkeypatch.setattr("services.results.archive.archiving._LONGEST_S", 0.1)
    caplog.set_level(logging.INFO)
    archived = Archived(tmp_path, PLACE, server.url)
    fill(archived.connection)
    server.stop()
    running = asyncio.create_task(archived.archiving.run())
    await until(lambda: "archiving finished jobs in s3://touchstone/archive is delayed" in caplog.text)
    await asyncio.sleep(0.5)
    assert caplog.text.count("is delayed") == 1
    await asyncio.to_thread(server.start)
    await until(lambda: len(archived.store.folders("jobs")) == len(JOBS))
    await until(lambda: "answers again" in caplog.text)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not any(key in caplog.text for key in (KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]))
    await archived.database.close()
    shutil.rmtree(tmp_path / "scratch", ignore_errors=True)
