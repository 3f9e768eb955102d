"""Finished jobs in the archive: each once, whole or not at all, and gone when they are deleted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import duckdb
import pytest

from services.results.archive import versions
from services.results.intake import writes
from services.results.stores.folder import Folder
from tests.unit.results.archive.archived import JOBS, LATER, SAID, Archived, annotate, copied, fill
from tests.unit.results.builders import START, answer, batch, event, job, plan, run
from tests.waiting import until
from touchstone.v1 import job_pb2

COMPLETED = job_pb2.Job.STATE_COMPLETED


@pytest.fixture
async def made(filled_folder: Path, tmp_path: Path) -> AsyncIterator[Archived]:
    archived = copied(filled_folder, tmp_path)
    yield archived
    await archived.database.close()


async def test_each_finished_job_is_there_once_with_a_manifest_of_checksums(made: Archived) -> None:
    await made.archive()
    before = made.files()
    assert {Path(name).parts[1] for name in before} == set(JOBS)
    version = versions.read(made.store, "done-1", *made.manifests("done-1"))
    assert {file.table: file.rows for file in version.files} == {
        **{"items": 40, "jobs": 1, "seals": 1, "metrics": 3, "answer_texts": 1, "events": 1},
        **{"annotations": 1, "preferences": 1, "rubrics": 1, "ratings": 1, "configuration_names": 1},
    }
    for file in version.files:
        path = made.root / "jobs" / "done-1" / file.file
        assert (path.stat().st_size, versions.digest_of(path)) == (file.bytes, file.sha256)
        assert path.stat().st_mode & 0o777 == 0o600
    await made.archive()
    assert made.files() == before
    assert not made.scratch.exists()


async def test_jobs_that_ended_just_now_wait_for_late_answers(made: Archived) -> None:
    await made.archive(SAID - timedelta(seconds=1))
    assert made.files() == set()


async def test_a_job_that_runs_again_gets_another_version_and_loses_none(made: Archived) -> None:
    await made.archive()
    before = made.files()
    again = job("failed", plan("t", 40), model="failed", minute=2, attempt=2)
    run(made.connection, again, 38, minute=50)
    await made.archive()
    assert before < made.files()
    newest, first = (versions.read(made.store, "failed", name) for name in versions.manifests(made.manifests("failed")))
    assert (newest.number, newest.answers, first.number, first.answers) == (2, "2.38.0", 1, "1.2.1")


async def test_what_people_say_later_makes_a_version_that_shares_the_answers(made: Archived) -> None:
    await made.archive()
    before = made.files()
    annotate(made.connection, 2, "done-1", "more")
    await made.archive()
    added = {name.split("/")[2].split(".")[0] for name in made.files() - before}
    assert added == {"annotations", "version-000002"}


async def test_answers_that_come_late_are_archived_too(made: Archived) -> None:
    await made.archive()
    await made.database.write(lambda c: writes.store_items(c, [batch("cancelled", "t", [answer(2)])]))
    await made.archive()
    newest = versions.manifests(made.manifests("cancelled"))[0]
    assert versions.read(made.store, "cancelled", newest).answers == "1.3.1"


async def test_the_archive_keeps_texts_that_the_database_drops(made: Archived) -> None:
    await made.archive()
    made.connection.execute("UPDATE answer_texts SET dropped_attempt = 1, dropped_at = now()")
    made.connection.execute("UPDATE items SET response = ''")
    annotate(made.connection, 2, "done-1", "more")
    await made.archive()
    newest = versions.read(made.store, "done-1", versions.manifests(made.manifests("done-1"))[0])
    items, texts = newest.of("items"), newest.of("answer_texts")
    assert items is not None
    assert texts is not None
    with duckdb.connect() as reader:
        folder = f"{made.place}/jobs/done-1"
        assert reader.execute(f"SELECT count(*) FROM '{folder}/{items.file}' WHERE response <> ''").fetchall() == [
            (40,)
        ]
        assert reader.execute(f"SELECT dropped_at FROM '{folder}/{texts.file}'").fetchall() == [(None,)]


async def test_nothing_is_left_of_a_job_that_its_owner_deletes(made: Archived) -> None:
    await made.archive()
    gone = job("done-1", state=COMPLETED)
    gone.deleted_at.FromDatetime(START)
    await made.database.write(lambda c: writes.store_events(c, [event("99", gone, "deleted")]))
    # What a crash left of a file.
    (made.root / "jobs" / "done-1" / "items.1.parquet.new").write_bytes(b"texts")
    await made.archive()
    assert [name for name in made.files() if "done-1" in name] == ["deleted/done-1.json"]
    said = json.loads((made.root / "deleted" / "done-1.json").read_text())
    assert said == {"owner": "ann", "deleted_by": "ann", "deleted_at": "2026-11-20T08:00:00"}
    before = made.files()
    await made.archive()
    assert made.files() == before


class Cut(Folder):
    """A folder that refuses after so many calls that change it, as a store that goes away or a process that ends."""

    left = 0

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        self._change()
        with super().create(name) as file:
            yield file
            self._change()

    def remove_folder(self, folder: str) -> None:
        self._change()
        super().remove_folder(folder)

    def _change(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("The store is away")


async def test_a_job_counts_only_with_all_of_its_files_wherever_it_is_cut_off(made: Archived) -> None:
    store, cuts = Cut(made.root), 0
    gone = job("cancelled", state=job_pb2.Job.STATE_CANCELLED)
    gone.deleted_at.FromDatetime(START)
    for step in range(1000):
        if step == 60:
            await made.database.write(lambda c: writes.store_events(c, [event("99", gone, "deleted")]))
        store.left = step % 40
        try:
            if not await made.archiving.look(store, LATER) and step > 60:
                break
        except OSError:
            cuts += 1
        for job_id in store.folders("jobs"):
            for manifest in versions.manifests(store.names(f"jobs/{job_id}")):
                version = versions.read(store, job_id, manifest)
                assert {file.file for file in version.files} <= set(store.names(f"jobs/{job_id}"))
    assert cuts > 5
    assert sorted(store.folders("jobs")) == ["done-1", "done-2", "failed"]
    assert [made.manifests(name) != [] for name in ("done-1", "done-2", "failed")] == [True] * 3


async def test_a_store_that_is_away_is_tried_again(made: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.results.archive.archiving._LOOK_S", 0.01)
    monkeypatch.setattr("services.results.archive.archiving._LONGEST_S", 0.02)
    made.root.write_bytes(b"not a folder")
    running = asyncio.create_task(made.archiving.run())
    await asyncio.sleep(0.2)
    assert not running.done()
    made.root.unlink()
    await until(lambda: len(made.store.folders("jobs")) == len(JOBS))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_an_archive_is_not_looked_through_while_nothing_changes(
    made: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    async def look(store: Folder, before: datetime) -> bool:
        looks.append(before)
        return False

    monkeypatch.setattr(made.archiving, "look", look)
    for name, seconds in (("_LOOK_S", 0.01), ("_SETTLES_S", 0.2), ("_SELDOM_S", 3600.0)):
        monkeypatch.setattr(f"services.results.archive.archiving.{name}", seconds)
    running = asyncio.create_task(made.archiving.run())
    await until(lambda: len(looks) > 1)
    await asyncio.sleep(0.5)
    count = len(looks)
    await asyncio.sleep(0.3)
    assert len(looks) == count
    await made.database.write(lambda c: None)
    await until(lambda: len(looks) > count)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_without_an_archive_nothing_happens(tmp_path: Path) -> None:
    archived = Archived(tmp_path)
    fill(archived.connection)
    archived.archiving._place = ""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(archived.archiving.run(), 0.2)
    await archived.database.close()
    assert not archived.root.exists()
