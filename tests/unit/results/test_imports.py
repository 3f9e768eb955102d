"""Answers of other tools: taken in whole or not at all, found by evaluators, dropped when a run holds them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results import duckdb_store
from services.results.database import Connection, Database
from services.results.imports import keeping, store
from services.results.imports.reads import find_answers, get_import
from services.results.imports.taking import take
from services.results.schema import open_file
from tests.unit.results.builders import START, event, job
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import (
    FindResponsesRequest,
    GetImportRequest,
    ImportAnswersRequest,
    ImportAnswersResponse,
    ImportedAnswer,
    ImportedRun,
)

NOW = START.replace(tzinfo=None)
COMPLETED = job_pb2.Job.STATE_COMPLETED


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(open_file(tmp_path / "results.duckdb"))
    yield opened
    await opened.close()


def run(digest: str = "d", mode: suite_pb2.Mode = suite_pb2.MODE_GENERATE, model: str = "m") -> ImportedRun:
    return ImportedRun(tool="lm_eval", tool_version="0.4.13", model=model, suite="glue", mode=mode, digest=digest)


def answers(*items: int, repeat: int = 0, task: str = "rte", response: str = "Answer: yes") -> list[ImportedAnswer]:
    return [
        ImportedAnswer(task=task, item=i, repeat=repeat, row=f'{{"n": {i}}}', prompt=f"q{i}", response=response)
        for i in items
    ]


async def sent(
    database: Database,
    *messages: Sequence[ImportedAnswer],
    described: ImportedRun | None = None,
    owner: str = "ann",
    again: bool = False,
    breaks: bool = False,
) -> ImportAnswersResponse:
    async def requests() -> AsyncIterator[ImportAnswersRequest]:
        for place, message in enumerate(messages):
            first = {"run": described or run(), "again": again} if place == 0 else {}
            yield ImportAnswersRequest(answers=message, **first)  # type: ignore[arg-type]
        if breaks:
            raise ConnectionError

    return await take(database, requests(), owner, NOW)


async def stored(database: Database) -> tuple[int, int]:
    """Imports and answers."""

    def count(connection: Connection) -> tuple[int, int]:
        ((imports, given),) = connection.execute(
            "SELECT (SELECT count(*) FROM imports), (SELECT count(*) FROM imported_answers)"
        ).fetchall()
        return imports, given

    return await database.read(count)


async def test_an_import_is_kept_without_the_log(database: Database, tmp_path: Path) -> None:
    made = await sent(database, answers(1, 2))
    without_log = tmp_path / "copied.duckdb"
    shutil.copyfile(tmp_path / "results.duckdb", without_log)
    with closing(open_file(without_log)) as connection:
        known = store.known(connection, "ann", "d")
    assert known is not None
    assert (known.import_id, known.answers) == (made.import_id, 2)


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


async def test_rows_come_in_pages_of_bytes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.results.imports.reads._ROWS_BYTES", 20)
    made = await sent(database, answers(*range(6)))
    pages = []
    after = None
    while True:
        request = GetImportRequest(import_id=made.import_id, task="rte", after=after, with_rows=True)
        page = await database.read(partial(get_import, request=request))
        if not page.items:
            break
        pages.append(list(zip(page.items, page.rows, strict=True)))
        after = page.items[-1]
    # Eight bytes each: a third row begins below twenty.
    assert pages == [[(n, f'{{"n": {n}}}') for n in three] for three in ((0, 1, 2), (3, 4, 5))]


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


async def test_repeats_with_different_prompts_have_no_prompt_in_common(database: Database) -> None:
    other = answers(0, repeat=1)
    other[0].prompt = "another"
    made = await sent(database, answers(0), other)
    there = await database.read(lambda c: get_import(c, GetImportRequest(import_id=made.import_id, task="rte")))
    assert list(there.prompts) == [0]


@pytest.mark.parametrize("text", ["a\x00b", "\u2028", "é𝔘", ""])
async def test_any_text_comes_back_whole(database: Database, text: str) -> None:
    made = await sent(database, answers(0, response=text))
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=[0])
    assert (await database.read(lambda c: find_answers(c, asked))).answers[0].response == text


def changed(change: Callable[[ImportedAnswer], object]) -> list[ImportedAnswer]:
    made = answers(5)
    change(made[0])
    return made


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (changed(lambda a: setattr(a, "task", "")), "Answer 3: task has 1 to 200 characters."),
        (changed(lambda a: setattr(a, "item", -1)), "Answer 3: item -1 is no row number."),
        (changed(lambda a: setattr(a, "repeat", 64)), "Answer 3: repeat is 64"),
        (changed(lambda a: setattr(a, "response", "é" * 140_000)), "Answer 3: response has more than"),
        (changed(lambda a: setattr(a, "row", "x" * 131_073)), "Answer 3: row has more than"),
        (changed(lambda a: setattr(a, "latency_ms", float("nan"))), "Answer 3: times and tokens are 0 or more."),
        (changed(lambda a: setattr(a, "input_tokens", -1)), "Answer 3: times and tokens are 0 or more."),
        (answers(1), "Item 1 of rte has two answers number 0."),
        (answers(*range(2, 1003)), "A message holds at most 1,000 answers."),
    ],
)
async def test_nothing_is_stored_when_one_answer_is_wrong(
    database: Database, wrong: list[ImportedAnswer], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        await sent(database, answers(0, 1), wrong)
    assert await stored(database) == (0, 0)


async def test_an_import_is_of_a_bounded_number_of_tasks(database: Database) -> None:
    given = [answer for number in range(501) for answer in answers(0, task=f"task {number}")]
    with pytest.raises(InvalidRequestError, match="501 tasks; 500 are possible"):
        await sent(database, given)


async def test_a_log_likelihood_answer_has_continuations(database: Database) -> None:
    with pytest.raises(InvalidRequestError, match="Answer 1: an answer of a log-likelihood run has continuations"):
        await sent(database, answers(0), described=run(mode=suite_pb2.MODE_LOGLIKELIHOOD))


@pytest.mark.parametrize(
    "described",
    [
        ImportedRun(tool="other", model="m", suite="s", mode=suite_pb2.MODE_GENERATE, digest="d"),
        run(model=""),
        run(digest="x" * 201),
        run(mode=suite_pb2.MODE_UNSPECIFIED),
    ],
)
async def test_a_run_says_what_it_is(database: Database, described: ImportedRun) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        await sent(database, answers(0), described=described)
    assert refused.value.field.startswith("run.")


async def test_an_import_without_answers_or_messages_is_none(database: Database) -> None:
    nothing: list[list[ImportedAnswer]] = []
    with pytest.raises(InvalidRequestError):
        await sent(database, *nothing)
    with pytest.raises(InvalidRequestError):
        await sent(database, [])
    assert await stored(database) == (0, 0)


async def test_a_stream_that_breaks_leaves_nothing(database: Database) -> None:
    with pytest.raises(ConnectionError):
        await sent(database, answers(0), answers(1), breaks=True)
    assert await stored(database) == (0, 0)


async def test_what_a_crash_left_unfinished_is_forgotten_at_the_next_start(database: Database) -> None:
    await database.write(lambda c: store.begin(c, "i", "ann", run(), NOW))
    await database.write(lambda c: store.add(c, "i", answers(0)))
    with pytest.raises(NotFoundError):
        await database.read(lambda c: get_import(c, GetImportRequest(import_id="i")))
    await keeping.forget_unfinished(database)
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


async def finished(database: Database, import_id: str, incomplete: bool = False) -> None:
    ended = job("j", state=COMPLETED)
    ended.spec.reuse.import_id = import_id
    ended.incomplete = incomplete
    await database.write(lambda c: duckdb_store.store_events(c, [event("000001", ended)]))


async def test_answers_go_once_a_complete_run_holds_them_and_the_run_is_still_named(database: Database) -> None:
    made = await sent(database, answers(0, 1))
    await finished(database, made.import_id)
    await keeping.tidy(database, 0, NOW)
    assert await stored(database) == (1, 0)
    with pytest.raises(NotFoundError, match="were dropped on"):
        await database.read(lambda c: get_import(c, GetImportRequest(import_id=made.import_id)))
    again = await sent(database, answers(0, 1))
    assert (again.known, again.job_id, again.answers) == (True, "j", 2)


async def test_answers_of_an_incomplete_run_stay_a_week_for_its_retry(database: Database) -> None:
    made = await sent(database, answers(0))
    await finished(database, made.import_id, incomplete=True)
    await keeping.tidy(database, 0, NOW + timedelta(days=6))
    assert await stored(database) == (1, 1)
    await keeping.tidy(database, 0, NOW + timedelta(days=8))
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
    await database.write(lambda c: duckdb_store.store_events(c, [event("000001", live)]))
    await keeping.tidy(database, 1500, NOW)
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


async def test_more_than_a_message_holds_is_given_in_parts(database: Database) -> None:
    big = "x" * 250_000
    made = await sent(database, *[answers(i, response=big) for i in range(20)])
    asked = FindResponsesRequest(import_id=made.import_id, task="rte", items=range(20))
    first = await database.read(lambda c: find_answers(c, asked))
    assert 1 <= len(first.answers) < 20
    assert first.ByteSize() < 4 * 1024 * 1024
