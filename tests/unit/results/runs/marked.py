"""Runs that are marked or named."""

from __future__ import annotations

from datetime import timedelta

from services.results.boards.leaderboard import leaderboard
from services.results.runs import configurations, job_reads
from services.results.runs.mark_run import mark_run
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import LOCAL, Identity
from tests.unit.results.builders import START, job, plan, run
from touchstone.v1 import metric_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb

NOW = START.replace(tzinfo=None) + timedelta(hours=1)
VALID, INVALIDATED, SUPERSEDED = pb.RUN_MARK_VALID, pb.RUN_MARK_INVALIDATED, pb.RUN_MARK_SUPERSEDED


def user(name: str) -> Identity:
    return Identity(name, token_pb2.ROLE_USER)


def mark(
    connection: Connection,
    job_id: str,
    how: pb.RunMark = INVALIDATED,
    reason: str = "the prompt was wrong",
    by: str = "",
    caller: Identity = LOCAL,
) -> metric_pb2.JobResult:
    request = pb.MarkRunRequest(job_id=job_id, mark=how, reason=reason, superseded_by=by)
    mark_run(connection, request, caller, NOW)
    return job_reads.get_job_result(connection, job_id)


def current(connection: Connection) -> list[tuple[str, str, int]]:
    entries = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue")).entries
    return [(entry.job_id, entry.previous_job_id, entry.run_count) for entry in entries if entry.rank]


def three_runs(connection: Connection) -> None:
    for minute, (job_id, right) in enumerate((("first", 4), ("second", 3), ("third", 2))):
        run(connection, job(job_id, plan("t", 4)), right=right, wrong=4 - right, minute=minute)


def name(
    connection: Connection,
    configuration: str,
    caller: Identity = LOCAL,
    visible: Visibility = EVERYTHING,
    **given: str,
) -> pb.Configuration:
    request = pb.NameConfigurationRequest(configuration=configuration, **given)
    return configurations.name_configuration(connection, request, caller, NOW, visible)
