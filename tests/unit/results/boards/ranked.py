"""Boards of stored runs."""

from __future__ import annotations

from services.results.boards.leaderboard import leaderboard
from services.results.storage.database import Connection
from touchstone.v1 import results_service_pb2, suite_pb2


def board(
    connection: Connection,
    suite: str = "glue",
    metric: str = "score",
    announced: list[suite_pb2.Suite] | None = None,
    **filters: object,
) -> results_service_pb2.GetLeaderboardResponse:
    request = results_service_pb2.GetLeaderboardRequest(suite=suite, metric=metric, **filters)  # type: ignore[arg-type]
    return leaderboard(connection, request, announced)


def ranks(response: results_service_pb2.GetLeaderboardResponse) -> list[tuple[int, str]]:
    return [(entry.rank, entry.job_id) for entry in response.entries]
