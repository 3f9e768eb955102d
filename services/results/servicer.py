"""ResultsService over gRPC: each call is one question to the database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from services import rpc
from services.errors import InvalidRequestError, NotFoundError, UnavailableError
from services.results import duckdb_store, item_reads, job_reads, stored_responses
from services.results.database import Connection, Database
from services.results.ingest import Feed
from services.results.job_result import compute
from services.results.leaderboard import UnknownSuiteError, leaderboard
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import results_service_pb2_grpc, suite_pb2

ListSuites = Callable[[], Awaitable[list[suite_pb2.Suite]]]
IsJob = Callable[[str], Awaitable[bool]]

Read = TypeVar("Read")

_TRAIL_WAIT_S = 2.0
_SEAL_WAIT_S = 10.0
_SEAL_WORK_S = 1.0
"""Left of a caller's deadline for computing, after the wait."""


class ResultsServicer(results_service_pb2_grpc.ResultsServiceServicer):
    """`suites` lists what evaluators announce; it is asked only about suites that no run names. `is_job` tells whether
    the scheduler has a job; it is asked only about jobs that the audit trail did not name yet."""

    def __init__(self, database: Database, results: Feed, events: Feed, suites: ListSuites, is_job: IsJob) -> None:
        self._database = database
        self._results = results
        self._events = events
        self._suites = suites
        self._is_job = is_job

    async def GetJob(self, request: pb.ResultsServiceGetJobRequest, context: Any) -> pb.ResultsServiceGetJobResponse:
        job = await self._of_job(request.job_id, lambda c: job_reads.get_job(c, request.job_id))
        return pb.ResultsServiceGetJobResponse(job=job)

    async def ListJobs(
        self, request: pb.ResultsServiceListJobsRequest, context: Any
    ) -> pb.ResultsServiceListJobsResponse:
        return await self._database.read(lambda c: job_reads.list_jobs(c, request))

    async def GetJobResult(self, request: pb.GetJobResultRequest, context: Any) -> pb.GetJobResultResponse:
        result = await self._of_job(request.job_id, lambda c: job_reads.get_job_result(c, request.job_id))
        return pb.GetJobResultResponse(result=result)

    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, context: Any) -> pb.GetLeaderboardResponse:
        try:
            return await self._database.read(lambda c: leaderboard(c, request))
        except UnknownSuiteError:
            announced = await self._suites()
            return await self._database.read(lambda c: leaderboard(c, request, announced))

    async def ListItems(self, request: pb.ListItemsRequest, context: Any) -> pb.ListItemsResponse:
        return await self._of_job(request.job_id, lambda c: item_reads.list_items(c, request))

    async def GetItem(self, request: pb.GetItemRequest, context: Any) -> pb.GetItemResponse:
        return pb.GetItemResponse(item=await self._database.read(lambda c: item_reads.get_item(c, request)))

    async def ListEvents(self, request: pb.ListEventsRequest, context: Any) -> pb.ListEventsResponse:
        return await self._database.read(lambda c: job_reads.list_events(c, request))

    async def SealJob(self, request: pb.SealJobRequest, context: Any) -> pb.SealJobResponse:
        rpc.require_admin()
        job = request.job
        if not job.job_id or not job.plan:
            raise InvalidRequestError("A job is sealed with its id and its plan.", "job")
        await self._reached(request.results_sequence, context)
        sealed = await self._database.read(lambda c: job_reads.sealed_result(c, job.job_id, job.attempt))
        if sealed is None:
            # Computed on a reader's snapshot, so that other jobs' results are stored meanwhile.
            computed = await self._database.read(lambda c: compute(c, job, seal=True))
            now = datetime.now(UTC)
            sealed = await self._database.write(lambda c: duckdb_store.store_seal(c, job, computed, now))
        return sealed

    async def ListStoredItems(self, request: pb.ListStoredItemsRequest, context: Any) -> pb.ListStoredItemsResponse:
        rpc.require_admin()
        await self._reached(request.results_sequence, context)
        return await self._database.read(lambda c: item_reads.list_stored_items(c, request.job_id))

    async def FindResponses(self, request: pb.FindResponsesRequest, context: Any) -> pb.FindResponsesResponse:
        rpc.require_admin()
        return await self._database.read(lambda c: stored_responses.find_responses(c, request))

    async def _of_job(self, job_id: str, read: Callable[[Connection], Read]) -> Read:
        """Reads what belongs to a job. Who has just created it can read it, though its audit event is on its way."""
        until = asyncio.get_running_loop().time() + _TRAIL_WAIT_S
        while True:
            position = self._events.position
            try:
                return await self._database.read(read)
            except NotFoundError:
                left = until - asyncio.get_running_loop().time()
                if left <= 0 or not await self._is_job(job_id):
                    raise
                with contextlib.suppress(UnavailableError):
                    await self._events.reached(position + 1, left)

    async def _reached(self, position: int, context: Any) -> None:
        left = context.time_remaining()
        timeout_s = _SEAL_WAIT_S if left is None else max(0, min(_SEAL_WAIT_S, left - _SEAL_WORK_S))
        await self._results.reached(position, timeout_s)
