"""What the rest of the installation reports over NATS: evaluators' announcements and the scheduler's jobs."""

from __future__ import annotations

import re
from collections.abc import Collection

from services import bus
from services.errors import UnavailableError
from services.results.intake.ordered_stream import NATS_TROUBLE
from services.words import plugins
from touchstone.v1 import evaluator_pb2, suite_pb2

_JOB_ID = re.compile(r"[0-9a-f-]{36}")


class Installation:
    """`suites`, `scorers` and `requests_per_minute` raise UnavailableError when NATS is away."""

    def __init__(self, connection: bus.Bus) -> None:
        self._connection = connection

    async def suites(self) -> list[suite_pb2.Suite]:
        """Every suite that some evaluator announced in the last days."""
        return [suite for evaluator in await self._evaluators() for suite in evaluator.suites]

    async def scorers(self) -> Collection[str]:
        """The scorers of plug-ins that some evaluator announced in the last days."""
        return plugins.scorers(await self._evaluators())

    async def requests_per_minute(self, endpoint: str) -> int:
        """The endpoint's limit, from the evaluator that announced it last; 0 without a limit."""
        evaluators = sorted(await self._evaluators(), key=lambda one: one.announced_at.ToNanoseconds(), reverse=True)
        limits = (one.requests_per_minute for each in evaluators for one in each.endpoints if one.endpoint == endpoint)
        return next(limits, 0)

    async def has_job(self, job_id: str) -> bool:
        """Whether the scheduler has the job. False also while NATS is away: stored data can be read without it."""
        if not _JOB_ID.fullmatch(job_id):
            return False
        try:
            return await self._connection.kv_get(bus.JOBS, bus.job_key(job_id)) is not None
        except NATS_TROUBLE:
            return False

    async def _evaluators(self) -> list[evaluator_pb2.Evaluator]:
        try:
            return [
                evaluator_pb2.Evaluator.FromString(message.data)
                async for _, message in self._connection.kv_all(bus.EVALUATORS)
            ]
        except NATS_TROUBLE as error:
            raise UnavailableError("NATS does not answer. Try again in a moment.") from error
