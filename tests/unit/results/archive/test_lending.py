"""What needs items of many jobs for a moment reads copies: nothing comes back, and nothing is said otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from services import bus
from services.errors import NoRoomError, UnavailableError
from services.results.archive import lending
from services.results.digests.reads import get_digest
from services.results.intake import writes
from services.results.read_queue import Questions
from services.results.storage.database import Connection
from services.results.storage.items_away import ItemsAwayError
from services.results.storage.lent_items import Copies
from tests.unit.results.archive.archived import Archived, copied
from tests.unit.results.builders import ERROR, START, answer, batch
from tests.unit.results.comparison.compared import answers
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import digest_pb2
from touchstone.v1 import results_service_pb2 as pb

DAY = 24 * 60
ITEMS = 40


def fill(connection: Connection) -> None:
    """Of each of several models a run before the time and one in it: tasks of all kinds, lost answers, other items.
    Where two are on a leaderboard, a run after the time stands for each there."""
    for number, model in enumerate(("m0", "m1")):
        for place, minute in enumerate((number, DAY + number, 3 * DAY + number)):
            seed = 10 * number + place
            tasks = [
                task("classes", answers(seed, ITEMS, 1, False), "f1", "accuracy"),
                task("passages", answers(seed + 100, ITEMS, 2, True), "accuracy", repeats=2),
                task("numbers", answers(seed + 200, ITEMS, 1, False), "pearson"),
            ]
            finished(connection, f"{model}-{place}", *tasks, model=model, minute=minute)
            right = right_or_wrong(share_right(0.9 if (number + place) % 2 else 0.3, ITEMS, seed))
            turns = task("right", right, "accuracy")
            finished(connection, f"turning-{model}-{place}", turns, model=model, suite="gsm8k", minute=minute)
    for place, minute in enumerate((5, DAY + 5)):
        failed = right_or_wrong(share_right(0.7, ITEMS, place))
        if place == 1:
            failed[:2] = [said(item, "", outcome=ERROR) for item in (0, 1)]
        finished(connection, f"failed-{place}", task("t", failed), model="failed", suite="superglue", minute=minute)
        fewer = right_or_wrong(share_right(0.6, ITEMS - 7 * place, place + 9))
        asked = task("t", fewer, item_set="all")
        finished(connection, f"fewer-{place}", asked, model="fewer", suite="medical", minute=minute, item_set="all")
    finished(connection, "only", task("t", right_or_wrong("10" * 20)), model="only", suite="mmlu", minute=DAY + 9)


def asked() -> pb.GetDigestRequest:
    request = pb.GetDigestRequest()
    request.begin_at.FromDatetime(START + timedelta(minutes=DAY))
    request.end_at.FromDatetime(START + timedelta(minutes=2 * DAY))
    return request


@dataclass
class Made:
    """A database whose old items have left, and the digest of the time before they did."""

    archived: Archived
    before: digest_pb2.Digest

    @property
    def questions(self) -> Questions:
        return Questions(self.archived.database)

    async def digest(self) -> digest_pb2.Digest:
        return (await self.questions.read_with_copies(read)).digest

    def left_behind(self) -> list[Path]:
        return [path for path in self.archived.moving.rglob("*") if path.is_file()]


def read(connection: Connection, copies: Copies) -> pb.GetDigestResponse:
    return get_digest(connection, asked(), copies=copies)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, digest_pb2.Digest]:
    """The folder of such a database, to be copied, and the digest."""

    async def made() -> tuple[Path, digest_pb2.Digest]:
        archived = Archived(tmp_path_factory.mktemp("left"))
        fill(archived.connection)
        before = await archived.database.read(lambda c: get_digest(c, asked()).digest)
        await archived.archive()
        await archived.leave()
        await archived.close()
        return archived.folder, before

    return asyncio.run(made())


@pytest.fixture
async def made(left: tuple[Path, digest_pb2.Digest], tmp_path: Path) -> AsyncIterator[Made]:
    folder, before = left
    archived = copied(folder, tmp_path)
    yield Made(archived, before)
    await archived.close()


async def test_a_digest_of_archived_runs_is_the_one_before_they_were_archived(made: Made) -> None:
    away = made.archived.away()
    assert {"m0-0", "m0-1", "m1-0", "m1-1", "failed-0", "failed-1", "fewer-1", "only"} <= set(away)
    assert len(made.before.series) == 7
    assert made.before.turned
    assert await made.digest() == made.before
    assert made.archived.away() == away
    assert not made.left_behind()


async def test_runs_of_which_one_is_here_and_one_is_away_compare_as_before(made: Made) -> None:
    await made.archived.returning.bring_back(["m0-0", "m1-1", "failed-0"])
    away = made.archived.away()
    assert await made.digest() == made.before
    assert made.archived.away() == away


async def test_few_whole_files_are_on_the_disk_at_the_same_time(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[int] = []
    shorten = lending._shorten

    def counted(connection: Connection, **given: object) -> None:
        whole.append(len([path for path in made.left_behind() if path.suffix == ".whole"]))
        shorten(connection, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(lending, "_shorten", counted)
    await made.digest()
    assert len(whole) == len(made.archived.away()) == 13
    assert max(whole) <= 2


async def test_answers_that_came_late_count(made: Made) -> None:
    late = answer(ITEMS, "yes", item_hash=f"h{ITEMS}")
    writes.store_items(made.archived.connection, [batch("only", "t", [late])])
    medians = [
        one.after.median_latency_ms
        for digest in (made.before, await made.digest())
        for one in digest.series
        if one.model == "only"
    ]
    assert medians == [29.5, 30]
    assert "only" not in made.archived.away()


async def test_runs_whose_files_are_lost_are_named(made: Made) -> None:
    for name in ("m0-0", "failed-1"):
        next((made.archived.root / "jobs" / name).glob("items.*")).unlink()
    series = {one.after.job_id: one for one in (await made.digest()).series}
    assert series["m0-1"].words == "The archive has lost the items of job m0-0, so nothing is compared."
    assert series["failed-1"].words == "The archive has lost the items of job failed-1, so nothing is compared."
    assert series["m1-1"] == next(one for one in made.before.series if one.after.job_id == "m1-1")
    assert not made.left_behind()


async def test_an_archive_that_is_away_and_a_full_disk_say_so(made: Made) -> None:
    made.archived.room.level = bus.Level.FULL
    with pytest.raises(NoRoomError):
        await made.digest()
    made.archived.room.level = bus.Level.ENOUGH
    hidden = made.archived.root.with_name("hidden")
    made.archived.root.rename(hidden)
    made.archived.root.write_bytes(b"not a folder")
    with pytest.raises(UnavailableError, match="cannot be read now"):
        await made.digest()
    assert not made.left_behind()


async def test_a_copy_of_the_database_takes_no_copies_of_items(made: Made) -> None:
    made.archived.database.lend = None
    with pytest.raises(ItemsAwayError):
        await made.digest()


async def test_what_an_earlier_process_left_behind_is_removed(made: Made) -> None:
    left = made.archived.moving / "lent" / "x" / "only.whole"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    await made.archived.lending.tidy()
    assert not left.exists()
