"""Answers of other tools: taken in whole or not at all, found by evaluators, dropped when a run holds them."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.results.imports import store
from services.results.imports.reads import find_answers, get_import
from services.results.storage import database as store_file
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from tests.unit.results.imports.imported import answers, run, sent, stored
from tests.waiting import until
from touchstone.v1 import item_result_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import FindResponsesRequest, GetImportRequest, ImportedAnswer, ImportedRun


def known_without_log(folder: Path) -> store.Known | None:
    """What the file alone says of the import."""
    without_log = folder / "copied.duckdb"
    shutil.copyfile(folder / "results.duckdb", without_log)
    with closing(open_file(without_log)) as connection:
        return store.known(connection, "ann", "d")


@asynccontextmanager
async def read_under_way(database: Database) -> AsyncIterator[threading.Event]:
    """A read that began before what is written meanwhile; it ends with the event."""
    began, end = threading.Event(), threading.Event()

    def ask(connection: Connection) -> bool:
        connection.execute("FROM imports").fetchall()
        began.set()
        return end.wait(60)

    reading = asyncio.create_task(database.read_long(ask))
    await asyncio.to_thread(began.wait, 60)
    try:
        yield end
    finally:
        end.set()
        assert await reading


async def test_an_import_is_kept_without_the_log(database: Database, tmp_path: Path) -> None:
    made = await sent(database, answers(1, 2))
    known = known_without_log(tmp_path)
    assert known is not None
    assert (known.import_id, known.answers) == (made.import_id, 2)


async def test_an_import_waits_for_reads_that_keep_it_from_the_file(database: Database, tmp_path: Path) -> None:
    async with read_under_way(database) as end:
        sending = asyncio.create_task(sent(database, answers(1, 2)))
        await until(lambda: database.version == 3)
        end.set()
        made = await sending
    known = known_without_log(tmp_path)
    assert known is not None
    assert known.import_id == made.import_id


async def test_an_import_reaches_the_file_after_a_read_that_takes_long(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_file, "_CHECKPOINT_S", 0.1)
    monkeypatch.setattr(store, "_CHECK_S", 0.01)
    async with read_under_way(database):
        assert (await sent(database, answers(1, 2))).answers == 2
        assert database.behind
    tidying = asyncio.create_task(store.keep_tidy(database, 0))
    await until(lambda: not database.behind)
    assert known_without_log(tmp_path) is not None
    tidying.cancel()


async def test_what_is_sent_in_several_messages_is_found_by_item_and_repeat(database: Database) -> None:
    made = await sent(database, answers(0, 1, 2), answers(1, repeat=1), answers(7, task="cola"))
    assert (made.answers, made.repeats, made.known) == (5, 2, False)
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=[2, 1, 5], repeat=0)
    found = await database.read(lambda c: find_answers(c, asked))
    assert [answer.item for answer in found.answers] == [1, 2]
    assert found.answers[0] == answers(1)[0]
    there = await database.read(lambda c: get_import(c, GetImportRequest(import_id=made.import_id, task="rte")))
    assert (there.owner, there.run, list(there.items)) == ("ann", run(), [0, 1, 2])
    assert [(task.task, task.items, task.answers, task.repeats) for task in there.tasks] == [
        ("cola", 1, 1, 1),
        ("rte", 3, 4, 2),
    ]
    assert there.prompts[1] == store.prompts_number("q1", [])
    request = GetImportRequest(import_id=made.import_id, task="rte", after=1)
    assert list((await database.read(lambda c: get_import(c, request))).items) == [2]


async def test_an_import_is_about_a_suite_or_a_dataset(database: Database) -> None:
    ours = ImportedRun(tool="imported", model="m", dataset_id="ds_1", mode=suite_pb2.MODE_GENERATE, digest="e")
    assert (await sent(database, answers(0, task="rows"), described=ours)).answers == 1
    for change, field in (
        (ImportedRun(suite="glue"), "dataset_id"),
        (ImportedRun(tool="lm_eval"), "dataset_id"),
        (ImportedRun(mode=suite_pb2.MODE_LOGLIKELIHOOD), "mode"),
    ):
        wrong = ImportedRun()
        wrong.CopyFrom(ours)
        wrong.MergeFrom(change)
        with pytest.raises(InvalidRequestError) as refused:
            await sent(database, answers(0), described=wrong)
        assert refused.value.field == f"run.{field}"


async def test_continuations_come_back_as_they_were(database: Database) -> None:
    given = ImportedAnswer(task="rte", item=0, prompt="q")
    for text, value in ((" yes", -1.5), (" no", float("-inf"))):
        given.continuations.append(item_result_pb2.Continuation(text=text, loglikelihood=value, greedy=value > -2))
    made = await sent(database, [given], described=run(mode=suite_pb2.MODE_LOGLIKELIHOOD))
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=[0])
    assert (await database.read(lambda c: find_answers(c, asked))).answers[0] == given


@pytest.mark.parametrize("text", ["a\x00b", "\u2028", "é𝔘", ""])
async def test_any_text_comes_back_whole(database: Database, text: str) -> None:
    made = await sent(database, answers(0, response=text))
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=[0])
    assert (await database.read(lambda c: find_answers(c, asked))).answers[0].response == text


async def test_a_stream_that_breaks_leaves_nothing(database: Database) -> None:
    with pytest.raises(ConnectionError):
        await sent(database, answers(0), answers(1), breaks=True)
    assert await stored(database) == (0, 0)


async def test_the_same_logs_of_the_same_user_are_one_import(database: Database) -> None:
    first = await sent(database, answers(0))
    repeated = await sent(database, answers(0))
    assert (repeated.import_id, repeated.known, repeated.job_id, repeated.repeats) == (first.import_id, True, "", 1)
    assert (await sent(database, answers(0), owner="bob")).known is False
    assert (await sent(database, answers(0), described=run("other"))).known is False
    forced = await sent(database, answers(0), again=True)
    assert forced.import_id != first.import_id
    assert await stored(database) == (4, 4)
