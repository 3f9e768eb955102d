"""The questions behind a leaderboard and behind rows side by side, and what is wrong with one about an unknown suite or
metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from services import rpc
from services.errors import InvalidRequestError, NotFoundError
from services.gateway.backend import Backend
from services.gateway.reads import jobs
from services.gateway.reads.catalogue import Catalogue
from touchstone.v1 import results_service_pb2

DIGEST_S = 60.0
"""Seconds in which a digest is answered: it compares many runs."""

SUITE_SCORE = "score"
"""The name of a suite's score as a metric."""


async def ask_leaderboard(
    backend: Backend, request: results_service_pb2.GetLeaderboardRequest, caller: rpc.Identity
) -> results_service_pb2.GetLeaderboardResponse:
    """Without entries for a suite without runs. Raises InvalidRequestError for an unknown item set."""
    try:
        return await backend.ask(backend.results.GetLeaderboard, request, caller)
    except NotFoundError:
        return results_service_pb2.GetLeaderboardResponse()


def has_metric(board: results_service_pb2.GetLeaderboardResponse, metric: str) -> bool:
    """Whether runs on the board can have the metric; while it names none, they may have any."""
    return not board.metrics or metric in (SUITE_SCORE, *board.metrics)


async def require_answered(
    catalogue: Catalogue, suite: str, metric: str, board: results_service_pb2.GetLeaderboardResponse
) -> None:
    """Raises InvalidRequestError if the board is empty, or has no ranking, because the suite or metric is unknown."""
    if not board.entries:
        await require_known(catalogue, suite, metric)
    elif not has_metric(board, metric):
        raise _unknown_metric(suite, metric, board.metrics)


async def require_known(catalogue: Catalogue, suite: str, metric: str) -> None:
    """Raises InvalidRequestError for an unknown suite, or a metric that no task of it has. A dataset without runs may
    have any."""
    if jobs.is_dataset(suite):
        return
    known = await catalogue.suite(suite)
    metrics = {spec.metric for task in known.tasks for spec in task.metrics}
    if metric != SUITE_SCORE and metric not in metrics and not known.open:
        raise _unknown_metric(suite, metric, sorted(metrics))


def _unknown_metric(suite: str, metric: str, known: Sequence[str]) -> InvalidRequestError:
    names = ", ".join(dict.fromkeys([SUITE_SCORE, *known]))
    return InvalidRequestError(f"Suite {suite} has no metric {metric[:80]!r}. Its metrics: {names}.", "metric")


LEAST_JOBS, MOST_JOBS = 2, 4
_TIMEOUT_S = 20.0
OF_ONE_JOB = ("only_right", "only_wrong")
"""Filters that are about one of the jobs."""


async def ask_side_by_side(
    backend: Backend, request: results_service_pb2.ListSideBySideRequest, caller: rpc.Identity
) -> results_service_pb2.ListSideBySideResponse:
    """Raises InvalidRequestError for jobs that have no row in common, NotFoundError for an unknown one."""
    return await backend.ask(backend.results.ListSideBySide, request, caller, timeout_s=_TIMEOUT_S)


def digest_request(days: int, to: str, schedule_id: str, project_id: int) -> results_service_pb2.GetDigestRequest:
    """Raises InvalidRequestError for a time that is not one."""
    try:
        end = datetime.fromisoformat(to) if to else datetime.now(UTC)
        end = (end if end.tzinfo else end.replace(tzinfo=UTC)).astimezone(UTC)
        begin = end - timedelta(days=days)
    except (ValueError, OverflowError):
        said = f"{to} is not a time. Write it as 2026-11-30 or 2026-11-30T06:00:00Z."
        raise InvalidRequestError(said, "to") from None
    request = results_service_pb2.GetDigestRequest(schedule_id=schedule_id, project_id=project_id)
    request.begin_at.FromDatetime(begin)
    request.end_at.FromDatetime(end)
    return request
