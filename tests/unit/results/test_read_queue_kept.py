"""Answers about jobs are computed again once a job has changed, and not before."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import list_trends, overview
from services.results.intake import writes
from services.results.read_queue import KeptAnswers
from services.results.runs.configurations import list_configurations
from services.results.runs.job_reads import list_jobs
from services.results.storage.database import Connection, Database
from tests.unit.results.builders import START, answer, batch, event, job, plan, run
from touchstone.v1 import results_service_pb2 as pb


class Jobs:
    """`version` counts changes; each answer says how many answers were computed before it."""

    def __init__(self) -> None:
        self.version = self.computed = 0

    async def ask(self) -> pb.GetOverviewResponse:
        self.computed += 1
        return pb.GetOverviewResponse(total_jobs=self.computed)


async def asked(kept: KeptAnswers, jobs: Jobs, key: str = "a", *, lasts: bool = True) -> int:
    found = kept.find(key)
    if found is None:
        found = await kept.compute(key, jobs.ask, lambda _: lasts)
    assert isinstance(found, pb.GetOverviewResponse)
    return found.total_jobs


async def test_an_answer_is_kept_until_a_job_changes() -> None:
    jobs = Jobs()
    kept = KeptAnswers(lambda: jobs.version)
    assert [await asked(kept, jobs, key) for key in "aaba"] == [1, 1, 2, 1]
    jobs.version += 1
    assert [await asked(kept, jobs, key) for key in "aba"] == [3, 4, 3]


async def test_an_answer_that_a_change_overtook_is_not_kept() -> None:
    jobs = Jobs()
    kept = KeptAnswers(lambda: jobs.version)

    async def overtaken() -> pb.GetOverviewResponse:
        found = await jobs.ask()
        jobs.version += 1
        return found

    await kept.compute("a", overtaken, lambda _: True)
    assert kept.find("a") is None


async def test_an_answer_that_does_not_last_is_not_kept() -> None:
    jobs = Jobs()
    kept = KeptAnswers(lambda: jobs.version)
    assert [await asked(kept, jobs, lasts=False) for _ in range(2)] == [1, 2]


async def test_answers_are_kept_for_a_minute_and_within_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("services.results.read_queue.time.monotonic", lambda: now)
    jobs = Jobs()
    kept = KeptAnswers(lambda: jobs.version, most_bytes=2 * pb.GetOverviewResponse(total_jobs=1).ByteSize())
    assert [await asked(kept, jobs, key) for key in "abacab"] == [1, 2, 1, 3, 1, 4], "b was used longest ago"
    now = 59.9
    assert await asked(kept, jobs, "b") == 4
    now = 60.0
    assert await asked(kept, jobs, "b") == 5


async def test_the_database_tells_changes_of_jobs_from_others(connection: Connection) -> None:
    database = Database(connection)
    await database.write(lambda c: None)
    await database.write(lambda c: None, of_jobs=False)
    with pytest.raises(ZeroDivisionError):
        await database.write(lambda c: 1 / 0)
    assert (database.version, database.jobs_version) == (3, 2)
    await database.close()


async def test_a_change_whose_caller_has_gone_counts_once_it_is_stored(connection: Connection) -> None:
    database = Database(connection)
    begun, free = threading.Event(), threading.Event()

    def slow(_: Connection) -> None:
        begun.set()
        free.wait(10)

    caller = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(begun.wait, 10)
    caller.cancel()
    await asyncio.wait((caller,))
    assert database.jobs_version == 0, "an answer that is computed now must not be kept"
    free.set()
    await database.write(lambda _: None, of_jobs=False)
    assert (database.version, database.jobs_version) == (2, 1)
    await database.close()


def test_boards_do_not_depend_on_answers_that_come_in(connection: Connection) -> None:
    now = START.replace(tzinfo=None) + timedelta(hours=1)

    def seen() -> list[str]:
        with connection.cursor() as reader:
            return [
                str(found)
                for found in (
                    overview(reader, pb.GetOverviewRequest(days=30), now),
                    list_trends(reader, pb.ListTrendsRequest(suite="glue"), now),
                    leaderboard(reader, pb.GetLeaderboardRequest(suite="glue")),
                    list_configurations(reader, pb.ListConfigurationsRequest()),
                    list_jobs(reader, pb.ResultsServiceListJobsRequest(with_scores=True)),
                )
            ]

    run(connection, job("done", plan("t", 4)), right=3, wrong=1)
    run(connection, job("again", plan("t", 4), model="m2", minute=1), right=2, wrong=2, minute=1)
    live = [job("live", plan("t", 4), model="m3", minute=2), job("again", plan("t", 4), model="m2", attempt=2)]
    writes.store_events(connection, [event(f"9999-{n}", one, "running") for n, one in enumerate(live)])
    before = seen()
    for job_id, attempt in (("done", 1), ("again", 2), ("live", 1), ("unknown", 1)):
        writes.store_items(connection, [batch(job_id, "t", [answer(n, "no") for n in range(6)], attempt)])
    assert seen() == before
