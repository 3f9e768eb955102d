"""ResultsService over gRPC: reads, and what people and imports add."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from services import rpc
from services.bus import Datasets, Room
from services.errors import NotFoundError, UnavailableError
from services.results import visibility
from services.results.calls.closing import RecordedRuns
from services.results.imports import store
from services.results.installation import Installation
from services.results.intake.feeds import Feed
from services.results.intake.kept_stream import KeptStream
from services.results.internal_servicer import ResultsInternalServicer
from services.results.items import reads as item_reads
from services.results.items.annotate import annotate, judge_row
from services.results.judging import ratings
from services.results.read_queue import Questions
from services.results.read_servicer import ReadServicer, now_utc
from services.results.runs import configurations, job_reads
from services.results.runs.mark_run import mark_run
from services.results.storage.database import Connection, Database
from services.results.visibility import HiddenJobError
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import results_service_pb2_grpc

Read = TypeVar("Read")

_TRAIL_WAIT_S = 2.0


class ResultsServicer(ReadServicer, results_service_pb2_grpc.ResultsServiceServicer):
    """`installation` is also queried for jobs that the audit trail did not name yet. `reads` is the setting."""

    def __init__(
        self,
        database: Database,
        internal: ResultsInternalServicer,
        events: Feed,
        installation: Installation,
        statements: KeptStream,
        questions: Questions,
        reads: str = visibility.OPEN,
        room: Room | None = None,
        store: Datasets | None = None,
        recorded_runs: RecordedRuns | None = None,
    ) -> None:
        super().__init__(database, installation, questions, reads, store)
        self._database = database
        self._internal = internal
        self._events = events
        self._statements = statements
        self._room = room or Room()
        self._recorded_runs = recorded_runs

    async def CloseRecordedRun(self, request: pb.CloseRecordedRunRequest, context: Any) -> pb.CloseRecordedRunResponse:
        assert self._recorded_runs is not None
        return await self._recorded_runs.close(rpc.identity().user, request.name)

    async def DeleteRecordedRun(
        self, request: pb.DeleteRecordedRunRequest, context: Any
    ) -> pb.DeleteRecordedRunResponse:
        assert self._recorded_runs is not None
        return pb.DeleteRecordedRunResponse(run=await self._recorded_runs.discard(rpc.identity().user, request.name))

    async def AnnotateItem(self, request: pb.AnnotateItemRequest, context: Any) -> pb.AnnotateItemResponse:
        caller, visible, now = rpc.identity(), self._visible(), now_utc()
        await self._database.write(lambda c: annotate(c, request, caller, now, visible))
        await self._statements.publish()
        of_item = pb.GetItemRequest(job_id=request.job_id, task=request.task, item=request.item, repeat=request.repeat)
        item = await self._database.read(lambda c: item_reads.get_item(c, of_item, visible))
        return pb.AnnotateItemResponse(item=item)

    async def JudgeRow(self, request: pb.JudgeRowRequest, context: Any) -> pb.JudgeRowResponse:
        caller, visible, now = rpc.identity(), self._visible(), now_utc()
        said = await self._database.write(lambda c: judge_row(c, request, caller, now, visible))
        await self._statements.publish()
        return pb.JudgeRowResponse(preference=said)

    async def RateAnswers(self, request: pb.RateAnswersRequest, context: Any) -> pb.RateAnswersResponse:
        rater, visible, now = rpc.identity().user, self._visible(), now_utc()
        stored = await self._database.write(lambda c: ratings.rate(c, request, rater, now, visible), of_jobs=False)
        await self._statements.publish()
        return stored

    async def ImportAnswers(
        self, requests: AsyncIterator[pb.ImportAnswersRequest], context: Any
    ) -> pb.ImportAnswersResponse:
        return await store.take(self._database, self._room.guard(requests), rpc.identity().user, now_utc())

    async def NameConfiguration(
        self, request: pb.NameConfigurationRequest, context: Any
    ) -> pb.NameConfigurationResponse:
        caller, visible, now = rpc.identity(), self._visible(), now_utc()
        named = await self._database.write(
            lambda c: configurations.name_configuration(c, request, caller, now, visible)
        )
        await self._statements.publish()
        return pb.NameConfigurationResponse(configuration=named)

    async def MarkRun(self, request: pb.MarkRunRequest, context: Any) -> pb.MarkRunResponse:
        caller, visible, now = rpc.identity(), self._visible(), now_utc()
        await self._database.write(lambda c: mark_run(c, request, caller, now, visible))
        await self._statements.publish()
        result = await self._database.read(lambda c: job_reads.get_job_result(c, request.job_id, visible))
        return pb.MarkRunResponse(result=result)

    # Released here. The services now call them in ResultsInternalService.
    async def SealJob(self, request: pb.SealJobRequest, context: Any) -> pb.SealJobResponse:
        return await self._internal.SealJob(request, context)

    async def ListStoredItems(self, request: pb.ListStoredItemsRequest, context: Any) -> pb.ListStoredItemsResponse:
        return await self._internal.ListStoredItems(request, context)

    async def FindResponses(self, request: pb.FindResponsesRequest, context: Any) -> pb.FindResponsesResponse:
        return await self._internal.FindResponses(request, context)

    async def GetImport(self, request: pb.GetImportRequest, context: Any) -> pb.GetImportResponse:
        return await self._internal.GetImport(request, context)

    async def _of_job(self, job_id: str, read: Callable[[Connection], Read]) -> Read:
        """Reads data of a job. Its creator can read it at once, although its audit event is still on its way."""
        until = asyncio.get_running_loop().time() + _TRAIL_WAIT_S
        while True:
            position = self._events.position
            try:
                return await self._questions.read(read)
            except HiddenJobError:
                raise
            except NotFoundError:
                left = until - asyncio.get_running_loop().time()
                if left <= 0 or await self._is_stored(job_id) or not await self._installation.has_job(job_id):
                    raise
                with contextlib.suppress(UnavailableError):
                    await self._events.reached(position + 1, left)

    async def _is_stored(self, job_id: str) -> bool:
        """Something else that the question names was not found, such as a baseline."""
        return await self._questions.read(lambda c: job_reads.is_stored(c, job_id))
