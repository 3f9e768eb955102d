"""How long imported answers are kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from services.errors import NotFoundError
from services.results.imports import store
from services.results.imports.reads import get_import
from services.results.intake import writes
from services.results.storage.database import Connection, Database
from tests.unit.results.builders import event, job
from tests.unit.results.imports.imported import NOW, answers, run, sent, stored
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import GetImportRequest

COMPLETED = job_pb2.Job.STATE_COMPLETED


async def test_what_a_crash_left_unfinished_is_forgotten_at_the_next_start(database: Database) -> None:
    await database.write(lambda c: store.begin(c, "i", "ann", run(), NOW))
    await database.write(lambda c: store.add(c, "i", answers(0)))
    with pytest.raises(NotFoundError):
        await database.read(lambda c: get_import(c, GetImportRequest(import_id="i")))
    await store.forget_unfinished(database)
    assert await stored(database) == (0, 0)


async def finished(database: Database, import_id: str, incomplete: bool = False) -> None:
    ended = job("j", state=COMPLETED)
    ended.spec.reuse.import_id = import_id
    ended.incomplete = incomplete
    await database.write(lambda c: writes.store_events(c, [event("000001", ended)]))


async def test_answers_go_once_a_complete_run_holds_them_and_the_run_is_still_named(database: Database) -> None:
    made = await sent(database, answers(0, 1))
    await finished(database, made.import_id)
    await store.tidy(database, 0, NOW)
    assert await stored(database) == (1, 0)
    with pytest.raises(NotFoundError, match="were dropped on"):
        await database.read(lambda c: get_import(c, GetImportRequest(import_id=made.import_id)))
    again = await sent(database, answers(0, 1))
    assert (again.known, again.job_id, again.answers) == (True, "j", 2)


async def test_answers_of_an_incomplete_run_stay_a_week_for_its_retry(database: Database) -> None:
    made = await sent(database, answers(0))
    await finished(database, made.import_id, incomplete=True)
    await store.tidy(database, 0, NOW + timedelta(days=6))
    assert await stored(database) == (1, 1)
    await store.tidy(database, 0, NOW + timedelta(days=8))
    assert await stored(database) == (1, 0)
    assert (await sent(database, answers(0))).known is False


def made_at(connection: Connection, import_id: str, at: datetime) -> None:
    connection.execute("UPDATE imports SET created_at = $at WHERE import_id = $id", {"at": at, "id": import_id})


async def test_the_oldest_waiting_answers_go_beyond_the_bound_but_none_that_a_live_job_takes(
    database: Database,
) -> None:
    taken, old, new = [
        (await sent(database, answers(0, response=name * 1000), described=run(name))).import_id for name in "abc"
    ]
    for age, import_id in enumerate((new, old, taken)):
        await database.write(partial(made_at, import_id=import_id, at=NOW - timedelta(hours=age)))
    live = job("j", state=job_pb2.Job.STATE_RUNNING)
    live.spec.reuse.import_id = taken
    await database.write(lambda c: writes.store_events(c, [event("000001", live)]))
    await store.tidy(database, 1500, NOW)
    assert await whether_kept(database, new, old, taken) == [True, False, True]


async def whether_kept(database: Database, *import_ids: str) -> list[bool]:
    found = []
    for import_id in import_ids:
        try:
            await database.read(partial(get_import, request=GetImportRequest(import_id=import_id)))
            found.append(True)
        except NotFoundError:
            found.append(False)
    return found
