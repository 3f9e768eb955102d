"""The places that the data leave open on a leaderboard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.comparison import rank_ranges
from services.results.comparison.rank_ranges import BoardRankRanges, of_tests
from services.results.paired.pairs.difference import Difference
from services.results.storage.database import Connection, Database
from tests.unit.results.builders import ANSWERED, UNPARSED
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import results_service_pb2

RUNS = {"best": "1" * 60, "second": "10" * 30, "twin": "01" * 30, "last": "0" * 60}


@pytest.fixture
async def database(connection: Connection) -> AsyncIterator[Database]:
    opened = Database(connection)
    yield opened
    await opened.close()


def store(connection: Connection, runs: Mapping[str, str], first: int = 0) -> None:
    for minute, (job_id, pattern) in enumerate(runs.items(), first):
        finished(connection, job_id, task("t", right_or_wrong(pattern)), model=job_id, minute=minute, item_set="s")


async def board(
    database: Database, known: BoardRankRanges, limit: int = 0
) -> results_service_pb2.GetLeaderboardResponse:
    request = results_service_pb2.GetLeaderboardRequest(suite="glue", limit=limit)
    return await known.shown(lambda of: database.read(lambda c: leaderboard(c, request, places=of)))


def ranges(answer: results_service_pb2.GetLeaderboardResponse) -> dict[str, tuple[int, int]]:
    return {entry.job_id: (entry.rank_low, entry.rank_high) for entry in answer.entries}


PATIENT = 120.0


"""Seconds that a loaded machine may take."""


async def settled(database: Database, known: BoardRankRanges) -> dict[str, tuple[int, int]]:
    """What a board shows, which waits for its places."""
    answer = await board(database, known)
    assert not answer.places_pending
    return ranges(answer)


async def test_a_read_that_comes_before_the_places_says_so_and_a_later_one_has_them(
    connection: Connection, database: Database
) -> None:
    store(connection, {job: RUNS[job] for job in ("best", "last")})
    known = BoardRankRanges(database, moment_s=0)
    first = await board(database, known)
    assert (first.places_pending, ranges(first)) == (True, {"best": (0, 0), "last": (0, 0)})
    async with asyncio.timeout(PATIENT):
        while True:
            later = await board(database, known)
            if not later.places_pending:
                break
            await asyncio.sleep(0.02)
    assert ranges(later) == {"best": (1, 1), "last": (2, 2)}


async def test_one_run_alone_has_no_places_to_wait_for(connection: Connection, database: Database) -> None:
    store(connection, {"best": RUNS["best"]})
    alone = await board(database, BoardRankRanges(database, moment_s=0))
    assert (alone.places_pending, ranges(alone)) == (False, {"best": (0, 0)})


async def test_a_board_shows_the_places_that_the_data_leave_open(connection: Connection, database: Database) -> None:
    store(connection, RUNS)
    known = BoardRankRanges(database, moment_s=PATIENT)
    expected = {"best": (1, 1), "second": (2, 3), "twin": (2, 3), "last": (4, 4)}
    assert await settled(database, known) == expected
    # The same board with fewer rows is known already.
    short = ranges(await board(database, known, limit=2))
    assert short == {job: expected[job] for job in short}
    assert len(short) == 2


async def test_a_new_run_asks_for_the_places_anew(connection: Connection, database: Database) -> None:
    store(connection, {job: RUNS[job] for job in ("best", "last")})
    known = BoardRankRanges(database, moment_s=PATIENT)
    assert await settled(database, known) == {"best": (1, 1), "last": (2, 2)}
    store(connection, {"twin": RUNS["twin"]}, first=9)
    assert await settled(database, known) == {"best": (1, 1), "twin": (2, 2), "last": (3, 3)}


async def test_behind_the_tested_contenders_every_place_is_open(connection: Connection, database: Database) -> None:
    store(connection, {f"m{n}": share_right(0.7, 40, n) for n in range(5)})
    found = await settled(database, BoardRankRanges(database, most=3, moment_s=PATIENT))
    assert sum(place == (0, 0) for place in found.values()) == 2
    assert max(high for _, high in found.values()) == 5


async def test_a_reader_of_the_service_sees_all_items_again_after_a_comparison_on_some(
    connection: Connection, database: Database
) -> None:
    store(connection, {"all": "1" * 30, "half": "1" * 15})
    found = await database.read(lambda c: rank_ranges.of_board(c, "score", ["all", "half"]))
    assert found == {"all": (1, 2), "half": (1, 2)}
    ((rows,),) = await database.read(lambda c: c.execute("SELECT count(*) FROM items").fetchall())
    assert rows == 45


async def test_unread_answers_leave_open_every_place_that_right_ones_would_have(
    connection: Connection, database: Database
) -> None:
    def store_unread(job_id: str, right: int, unread: int, first: int) -> None:
        marks = "1" * right + "?" * unread + "0" * (60 - right - unread)
        answers = [
            said(i, "yes" if m == "1" else "no", outcome=UNPARSED if m == "?" else 1) for i, m in enumerate(marks)
        ]
        finished(connection, job_id, task("t", answers), model=job_id, minute=first, item_set="s")

    store(connection, {"best": "1" * 50 + "0" * 10, "low": "1" * 12 + "0" * 48})
    store_unread("few", right=30, unread=1, first=5)
    store_unread("many", right=25, unread=30, first=6)
    found = await settled(database, BoardRankRanges(database, moment_s=PATIENT))
    # With its 30 right ones more it were the best; as it stands only the last one is behind it for certain.
    assert found == {"best": (1, 2), "few": (2, 3), "many": (1, 3), "low": (4, 4)}


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation", "macro_f1"])
@pytest.mark.parametrize("passages", [False, True])
async def test_best_cases_hold_for_every_metric_of_classes(
    connection: Connection, database: Database, metric: str, passages: bool
) -> None:
    """A run of nonsense whose every answer is unread is shown to be worse than nobody, and nobody than it."""
    reference = ["yes", "no"] * 30

    def store_said(job_id: str, answers: Sequence[str], outcome: int, minute: int) -> None:
        made = [
            said(item, answer, right, outcome, group=f"p{item // 3}" if passages else "")
            for item, (answer, right) in enumerate(zip(answers, reference, strict=True))
        ]
        finished(connection, job_id, task("t", made, metric), model=job_id, minute=minute, item_set="s")

    store_said("good", [*reference[:54], *reference[53:59]], ANSWERED, 1)
    store_said("poor", [*reference[1:], "yes"], ANSWERED, 2)
    assert await database.read(lambda c: rank_ranges.of_board(c, metric, ["good", "poor"])) == {
        "good": (1, 1),
        "poor": (2, 2),
    }
    store_said("mute", reference, UNPARSED, 3)
    found = await database.read(lambda c: rank_ranges.of_board(c, metric, ["good", "poor", "mute"]))
    assert found == {"good": (1, 2), "poor": (2, 3), "mute": (1, 3)}


def test_place_ranges_count_who_is_shown_to_be_better_and_worse() -> None:
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = [Difference(value, 100) for value in (0.01, 0.2, 0.1)]
    assert of_tests(3, pairs, found, [0.4, 0.001, 0.03], 0.05) == [(1, 2), (1, 2), (3, 3)]
    assert of_tests(3, pairs, found, [None, None, None], 0.05) == [(1, 3)] * 3
    assert of_tests(2, [(1, 0)], [Difference(-0.1, 9)], [0.01], 0.05) == [(1, 1), (2, 2)]
