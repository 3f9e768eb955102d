"""Results that are computed again: lost with the database, or made by older rules."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.intake import resealing
from services.results.runs import job_reads
from services.results.storage.database import Connection, Database
from tests.unit.results.builders import UNPARSED
from tests.unit.results.finished import finished, right_or_wrong, said, task
from touchstone.v1 import metric_pb2, results_service_pb2


@pytest.fixture
async def database(connection: Connection) -> AsyncIterator[Database]:
    opened = Database(connection)
    yield opened
    await opened.close()


def board(connection: Connection) -> dict[str, tuple[int, str]]:
    found = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue"))
    return {entry.job_id: (entry.rank, entry.caution) for entry in found.entries}


async def test_a_result_of_older_rules_is_made_again_once_and_keeps_its_time(
    connection: Connection, database: Database
) -> None:
    answers = [said(item, "yes", outcome=UNPARSED if item < 6 else 1) for item in range(40)]
    finished(connection, "unread", task("t", answers), model="unread", item_set="s")
    finished(connection, "good", task("t", right_or_wrong("10" * 20)), model="good", item_set="s", minute=1)
    now = board(connection)
    # As an older version left it.
    old = metric_pb2.JobResult(job_id="unread", sealed=True, not_ranked_reason="15.0% could not be read")
    reason = {"reason": old.not_ranked_reason}
    connection.execute(
        "UPDATE seals SET rules = 0, caution = '', not_ranked_reason = $reason, result = $result "
        "WHERE job_id = 'unread'",
        reason | {"result": old.SerializeToString()},
    )
    for table in ("run_scores", "current_scores"):
        connection.execute(f"UPDATE {table} SET not_ranked_reason = $reason WHERE job_id = 'unread'", reason)
    (before,) = connection.execute("SELECT sealed_at FROM seals WHERE job_id = 'unread'").fetchall()
    assert board(connection)["unread"][0] == 0
    assert await resealing.reseal(database) == 1
    assert board(connection) == now == {"unread": (1, "15.0% of the answers could not be read"), "good": (2, "")}
    assert job_reads.get_job_result(connection, "unread").suite_score.mean == pytest.approx(34 / 40)
    assert connection.execute("SELECT sealed_at FROM seals WHERE job_id = 'unread'").fetchall() == [before]
    assert await resealing.reseal(database) == 0


async def test_a_lost_seal_is_made_again(connection: Connection, database: Database) -> None:
    finished(connection, "lost", task("t", right_or_wrong("1110")))
    for table in ("seals", "metrics", "run_scores", "current_scores"):
        connection.execute(f"DELETE FROM {table}")
    assert await resealing.reseal(database) == 1
    assert board(connection) == {"lost": (1, "")}
