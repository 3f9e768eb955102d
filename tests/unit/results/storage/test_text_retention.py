"""The bound of the answer store: whose texts go, what stays, who is told."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.errors import ConflictError
from services.results.intake import writes
from services.results.items import reads
from services.results.runs import job_reads
from services.results.scores import job_result
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from services.results.storage.stored_responses import find_responses
from services.results.storage.text_retention import make_room
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, seal
from tests.unit.results.dataset_runs import EXACT, calling, row, stored
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.results_service_pb2 import ListItemsRequest

RUNNING, COMPLETED, CANCELLED = job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_CANCELLED
ITEMS = 10
BYTES = ITEMS * (len("question 0") + 1000)
"""Of one job that `finish` made."""


def one(connection: Connection, name: str) -> job_pb2.Job:
    made = job(name, plan("t", ITEMS, "accuracy", "f1"))
    results = [answer(i, identity=f"{ord(name):02x}{i:030x}", response="x" * 1000) for i in range(ITEMS)]
    writes.store_items(connection, [batch(name, "t", results)])
    return made


def ended(connection: Connection, made: job_pb2.Job, minute: int, state: job_pb2.Job.State = COMPLETED) -> None:
    done = job_pb2.Job()
    done.CopyFrom(made)
    done.state = state
    told = event(f"{minute:06d}", done)
    told.occurred_at.FromDatetime(START + timedelta(minutes=minute))
    writes.store_events(connection, [told])


async def finish(database: Database, names: str, state: job_pb2.Job.State = COMPLETED) -> None:
    """Jobs that ran one after the other in this order."""

    def change(connection: Connection) -> None:
        for minute, name in enumerate(names):
            made = one(connection, name)
            if state == COMPLETED:
                computed = job_result.compute(connection, made, seal=True)
                writes.store_seal(connection, made, computed, START)
            ended(connection, made, minute, state)

    await database.write(change)


async def kept(database: Database) -> str:
    """The jobs whose texts are there."""

    def ask(connection: Connection) -> str:
        rows = connection.execute(
            "SELECT job_id FROM items WHERE response <> '' AND prompt <> '' AND identity IS NOT NULL "
            "GROUP BY job_id HAVING count(*) = $items ORDER BY 1",
            {"items": ITEMS},
        )
        return "".join(name for (name,) in rows.fetchall())

    return await database.read(ask)


async def result_of(database: Database, name: str) -> metric_pb2.JobResult:
    return await database.read(lambda connection: job_reads.get_job_result(connection, name))


async def test_an_uploaded_rows_id_and_metadata_stay_when_its_texts_go(database: Database) -> None:
    chat = f'[{{"role":"user","content":"{"x" * 2000}"}}]'

    def fill(connection: Connection) -> None:
        for minute, name in enumerate("ab"):
            made = [row(i, 1.0, metadata={"name": f"n{i}"}, messages=chat) for i in range(3)]
            ended(connection, stored(connection, name, made, EXACT), minute)

    await database.write(fill)
    await make_room(database, 3 * (2000 + 100))
    page = await database.read(lambda c: reads.list_items(c, ListItemsRequest(job_id="a")))
    first = page.items[0]
    assert (first.result.prompt, first.result.messages, first.result.response) == ("", "", "")
    assert (first.result.custom_id, first.result.metadata, first.score) == ("candidate-0", '{"name": "n0"}', 1.0)
    assert (await result_of(database, "a")).suite_score.mean == 1.0
    newest = await database.read(lambda c: reads.list_items(c, ListItemsRequest(job_id="b")))
    assert newest.items[0].result.response == "response 0"


async def test_texts_go_oldest_first_until_a_tenth_is_free(database: Database) -> None:
    await finish(database, "dcba")
    await make_room(database, 4 * BYTES)
    assert await kept(database) == "abcd"
    await make_room(database, 4 * BYTES - 1)
    assert await kept(database) == "abc"
    await make_room(database, 3 * BYTES - 1)
    assert await kept(database) == "ab"


async def test_the_newest_job_keeps_its_texts_whatever_the_bound(database: Database) -> None:
    await finish(database, "ab")
    await make_room(database, 1)
    assert await kept(database) == "b"


async def test_jobs_that_run_or_run_again_keep_their_texts(database: Database) -> None:
    await finish(database, "abc")

    def change(connection: Connection) -> None:
        writes.store_events(connection, [event("000099", job("r", plan("t", ITEMS)))])
        one(connection, "r")
        retried = job("a", plan("t", ITEMS), attempt=2)
        writes.store_events(connection, [event("000100", retried, "retried")])

    await database.write(change)
    await make_room(database, 1)
    assert await kept(database) == "acr"


async def test_a_job_that_a_live_job_draws_on_keeps_its_texts(database: Database) -> None:
    await finish(database, "abc")
    live = job("r", plan("t", ITEMS))
    live.spec.reuse.job_id = "a"
    await database.write(lambda connection: writes.store_events(connection, [event("000099", live)]))
    await make_room(database, 1)
    assert await kept(database) == "ac"


async def test_what_a_watch_compares_keeps_its_texts(database: Database) -> None:
    """Without them, an alarm by the texts would go. Once it has asked nothing for a month, it needs them no longer."""
    await finish(database, "abcde")

    def watch(connection: Connection, days: int) -> None:
        run = job("d", plan("t", ITEMS), state=COMPLETED)
        run.spec.schedule_id = "watch"
        run.spec.watching.reference_job_id, run.spec.watching.again_job_id = "a", "b"
        run.created_at.FromDatetime(datetime.now(UTC) - timedelta(days=days))
        writes.store_events(connection, [event(f"{999 + days:06d}", run)])

    await database.write(lambda connection: watch(connection, 0))
    await make_room(database, 1)
    assert await kept(database) == "abde"
    await database.write(lambda connection: watch(connection, 40))
    await make_room(database, 1)
    assert await kept(database) == "e"


async def test_cancelled_jobs_count_too(database: Database) -> None:
    await finish(database, "abc", CANCELLED)
    await make_room(database, 2 * BYTES)
    assert await kept(database) == "c"


async def test_every_number_is_the_same_after_the_texts_are_gone(database: Database) -> None:
    await finish(database, "ab")
    before = await result_of(database, "a")
    await make_room(database, 1)
    after = await result_of(database, "a")
    assert after.texts_dropped.startswith("20")
    after.texts_dropped = ""
    assert after == before

    def recompute(connection: Connection) -> tuple[metric_pb2.JobResult, results_service_pb2.StoredItem]:
        made = job_reads.get_job(connection, "a")
        request = results_service_pb2.GetItemRequest(job_id="a", task="t", item=3)
        return job_result.compute(connection, made, seal=True).result, reads.get_item(connection, request)

    again, item = await database.read(recompute)
    assert again.tasks == before.tasks
    assert (item.result.prediction, item.result.reference, item.result.latency_ms) == ("yes", "yes", 13.0)


async def test_dropped_answers_are_never_found_as_empty_ones(database: Database) -> None:
    await finish(database, "ab")
    await make_room(database, 1)
    by_identity = results_service_pb2.FindResponsesRequest(identities=[f"{ord('a'):02x}{0:030x}"])
    by_position = results_service_pb2.FindResponsesRequest(job_id="a", task="t", positions=[0])
    assert not (await database.read(lambda connection: find_responses(connection, by_identity))).results
    with pytest.raises(ConflictError, match="texts of job a's answers were dropped"):
        await database.read(lambda connection: find_responses(connection, by_position))


async def test_what_a_retry_adds_to_a_dropped_job_is_found_and_dropped_in_its_turn(database: Database) -> None:
    made = job("a", plan("t", ITEMS + 1))

    def first(connection: Connection) -> None:
        one(connection, "a")
        writes.store_items(connection, [batch("a", "t", [answer(ITEMS, outcome=ERROR)])])
        ended(connection, made, 0)

    await database.write(first)
    await finish(database, "b")
    await make_room(database, 1)
    assert await kept(database) == "b"
    made.attempt = 2
    new = answer(ITEMS, identity="0f" * 16, continuations=[item_result_pb2.Continuation(text="yes", tokens=1)])

    def second(connection: Connection) -> None:
        writes.store_items(connection, [batch("a", "t", [new], attempt=2)])
        ended(connection, made, 5)

    await database.write(second)
    await make_room(database, 10 * BYTES)
    own = results_service_pb2.FindResponsesRequest(job_id="a", task="t", positions=[ITEMS])
    found = (await database.read(lambda connection: find_responses(connection, own))).results
    assert [r.response for r in found] == ["answer: yes"]
    assert (await result_of(database, "a")).texts_dropped
    await finish(database, "cdefghi")
    await make_room(database, 1)
    with pytest.raises(ConflictError):
        await database.read(lambda connection: find_responses(connection, own))


async def test_a_drop_that_a_crash_cut_short_is_done_again(database: Database) -> None:
    await finish(database, "abc")
    await make_room(database, 3 * BYTES)
    marked = "UPDATE answer_texts SET dropped_at = now(), dropped_attempt = 1 WHERE job_id = 'a'"
    await database.write(lambda connection: connection.execute(marked))
    await make_room(database, 3 * BYTES - 1)
    assert await kept(database) == "bc"


async def test_continuations_go_with_the_other_texts(database: Database) -> None:
    def change(connection: Connection) -> None:
        for minute, name in enumerate("ab"):
            result = answer(0, response="", continuations=[item_result_pb2.Continuation(text="y" * 84, tokens=1)])
            writes.store_items(connection, [batch(name, "t", [result])])
            ended(connection, job(name, plan("t", 1)), minute)

    await database.write(change)
    await make_room(database, 2 * (100 + len("question 0")))
    texts = "SELECT job_id, len(continuations) FROM items ORDER BY 1"
    assert await database.read(lambda c: c.execute(texts).fetchall()) == [("a", 1), ("b", 1)]
    await make_room(database, 2 * (100 + len("question 0")) - 1)
    assert await database.read(lambda c: c.execute(texts).fetchall()) == [("a", None), ("b", 1)]


@pytest.mark.stack
async def test_the_file_stops_growing_under_a_bound(tmp_path: Path) -> None:
    """Jobs of 1 MB that do not compress, a bound of 5 MB."""
    path, sizes = tmp_path / "bounded.duckdb", []
    for part in range(3):
        database = Database(open_file(path))
        for number in range(8 * part, 8 * part + 8):
            text = random.Random(number).randbytes(500_000).hex()

            def change(connection: Connection, name: str = f"{number:02d}", text: str = text) -> None:
                results = [answer(i, response=text[i * 10_000 : (i + 1) * 10_000]) for i in range(100)]
                writes.store_items(connection, [batch(name, "t", results)])
                ended(connection, job(name, plan("t", 100)), int(name))

            await database.write(change)
            await make_room(database, 5_000_000)
        await database.close()
        sizes.append(path.stat().st_size)
    # Without a bound they are 7, 17 and 17 MB.
    assert sizes[2] < 12_000_000, sizes


def test_jobs_of_an_earlier_version_are_counted(tmp_path: Path, connection: Connection) -> None:
    seal(connection, one(connection, "a"))
    ended(connection, job("a", plan("t", ITEMS)), 0)
    connection.execute("DROP TABLE answer_texts")
    connection.execute("DELETE FROM migrations WHERE number = 3")
    connection.close()
    opened = open_file(tmp_path / "results.duckdb")
    assert opened.execute("SELECT job_id, attempt, bytes FROM answer_texts").fetchall() == [("a", 1, None)]
    opened.close()


async def test_tool_calls_and_log_probabilities_count_and_go_with_the_texts(database: Database) -> None:
    def change(connection: Connection) -> None:
        for minute, name in enumerate("ab"):
            made = calling(0, '{"city": "Rom"}')
            made.logprobs.add(token="x" * 1000, logprob=-1)
            ended(connection, stored(connection, name, [made]), minute)

    await database.write(change)
    await make_room(database, 1500)
    rows = "SELECT job_id, tool_calls IS NULL, logprobs IS NULL FROM items ORDER BY job_id"
    assert await database.read(lambda c: c.execute(rows).fetchall()) == [("a", True, True), ("b", False, False)]
