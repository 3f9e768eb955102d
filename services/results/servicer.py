"""ResultsService over gRPC: each call is one question to the database."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from services import rpc
from services.bus import Datasets, Room
from services.errors import NotFoundError, UnavailableError
from services.results import visibility
from services.results.boards.leaderboard import UnknownSuiteError, leaderboard, suite_metrics
from services.results.boards.overview import list_trends, overview
from services.results.calls import reads as calls
from services.results.calls import recorded
from services.results.calls.closing import RecordedRuns
from services.results.comparison.compare import compare
from services.results.comparison.rank_ranges import BoardRankRanges
from services.results.estimates.estimate import estimate_run
from services.results.experiments import board, runs, stored
from services.results.export.exports import Exports
from services.results.imports import store
from services.results.installation import Installation
from services.results.intake.feeds import Feed
from services.results.intake.kept_stream import KeptStream
from services.results.internal_servicer import ResultsInternalServicer
from services.results.items import reads as item_reads
from services.results.items.annotate import annotate, judge_row
from services.results.judging import ratings
from services.results.judging.reads import list_judges
from services.results.read_queue import KeptAnswers, Questions
from services.results.runs import configurations, job_reads
from services.results.runs.mark_run import mark_run
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection, Database
from services.results.visibility import HiddenJobError, Visibility
from touchstone.v1 import comparison_pb2, results_service_pb2_grpc
from touchstone.v1 import results_service_pb2 as pb

Read = TypeVar("Read")
Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer")

_TRAIL_WAIT_S = 2.0


def shared(
    answer: Callable[[ResultsServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
    lasts: Callable[[Answer], bool] | None = None,
) -> Callable[[ResultsServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """A call that only reads: equal ones at the same time are answered once."""

    @wraps(answer)
    async def call(self: ResultsServicer, request: Request, context: Any) -> Answer:
        visible = self._visible()
        return await self._questions.once(request, visible, lambda: answer(self, request, visible), lasts)

    return call


def of_admins(
    answer: Callable[[ResultsServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
) -> Callable[[ResultsServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """As `shared`. Raises PermissionDeniedError for other callers."""
    answered = shared(answer)

    @wraps(answer)
    async def call(self: ResultsServicer, request: Request, context: Any) -> Answer:
        rpc.require_admin()
        return await answered(self, request, context)

    return call


def of_jobs(
    answer: Callable[[ResultsServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
) -> Callable[[ResultsServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """As `shared`. The answer holds until a job changes: it depends on no answers or calls that come in meanwhile."""
    return shared(answer, lambda found: not getattr(found, "places_pending", False))


class ResultsServicer(results_service_pb2_grpc.ResultsServiceServicer):
    """`installation` is queried only for what is not stored: suites that no run names, jobs that the audit trail did
    not name yet, limits of endpoints. `reads` is the setting."""

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
        self._database = database
        self._internal = internal
        self._events = events
        self._installation = installation
        self._statements = statements
        self._reads = reads
        self._room = room or Room()
        self._exports = Exports(database, store)
        self._questions = questions
        self._places = BoardRankRanges(database)
        # Ratings and judgements count in them, too.
        self._experiment_boards = KeptAnswers(lambda: database.version)
        self._side_by_side = SideBySide()
        self._recorded_runs = recorded_runs

    @shared
    async def GetJob(
        self, request: pb.ResultsServiceGetJobRequest, visible: Visibility
    ) -> pb.ResultsServiceGetJobResponse:
        return await self._of_job(request.job_id, lambda c: job_reads.answer_job(c, request, visible))

    @of_jobs
    async def ListJobs(
        self, request: pb.ResultsServiceListJobsRequest, visible: Visibility
    ) -> pb.ResultsServiceListJobsResponse:
        answer = await self._questions.read(lambda c: job_reads.list_jobs(c, request, visible))
        if not answer.jobs:
            await self._require_suite(request.suite, visible)
        return answer

    @shared
    async def GetJobResult(self, request: pb.GetJobResultRequest, visible: Visibility) -> pb.GetJobResultResponse:
        result = await self._of_job(request.job_id, lambda c: job_reads.get_job_result(c, request.job_id, visible))
        return pb.GetJobResultResponse(result=result)

    @of_jobs
    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, visible: Visibility) -> pb.GetLeaderboardResponse:
        try:
            return await self._places.shown(
                lambda places: self._questions.read(lambda c: leaderboard(c, request, None, visible, places))
            )
        except UnknownSuiteError:
            announced = await self._installation.suites()
            return await self._questions.read(lambda c: leaderboard(c, request, announced, visible))

    @shared
    async def Compare(
        self, request: comparison_pb2.CompareRequest, visible: Visibility
    ) -> comparison_pb2.CompareResponse:
        try:
            return await self._questions.read_long(lambda c: compare(c, request, visible))
        except NotFoundError:
            await self._require_suite(request.suite, visible)
            raise

    @shared
    async def ListItems(self, request: pb.ListItemsRequest, visible: Visibility) -> pb.ListItemsResponse:
        return await self._of_job(request.job_id, lambda c: item_reads.list_items(c, request, visible))

    @shared
    async def ListJudges(self, request: pb.ListJudgesRequest, visible: Visibility) -> pb.ListJudgesResponse:
        return await self._of_job(request.job_id, lambda c: list_judges(c, request, visible))

    @shared
    async def GetItem(self, request: pb.GetItemRequest, visible: Visibility) -> pb.GetItemResponse:
        return pb.GetItemResponse(item=await self._questions.read(lambda c: item_reads.get_item(c, request, visible)))

    @shared
    async def ListSideBySide(self, request: pb.ListSideBySideRequest, visible: Visibility) -> pb.ListSideBySideResponse:
        return await self._questions.read(lambda c: self._side_by_side.rows(c, request, visible))

    @of_admins
    async def ListExperiments(
        self, request: pb.ListExperimentsRequest, visible: Visibility
    ) -> pb.ListExperimentsResponse:
        return await self._questions.read(lambda c: stored.list_experiments(c, request))

    @of_admins
    async def GetExperiment(self, request: pb.GetExperimentRequest, visible: Visibility) -> pb.GetExperimentResponse:
        key = request.SerializeToString(deterministic=True)
        found = self._experiment_boards.find(key)
        if found is None:
            found = await self._experiment_boards.compute(key, partial(self._experiment, request), lambda _: True)
        return cast(pb.GetExperimentResponse, found)

    async def _experiment(self, request: pb.GetExperimentRequest) -> pb.GetExperimentResponse:
        return await self._questions.read_long(lambda c: board.get_experiment(c, request))

    @of_admins
    async def ListExperimentRuns(
        self, request: pb.ListExperimentRunsRequest, visible: Visibility
    ) -> pb.ListExperimentRunsResponse:
        return await self._questions.read_long(lambda c: runs.list_runs(c, request))

    @shared
    async def EstimateRun(self, request: pb.EstimateRunRequest, visible: Visibility) -> pb.EstimateRunResponse:
        job = await self._of_job(request.job_id, lambda c: job_reads.get_job(c, request.job_id, visible))
        limit = await self._installation.requests_per_minute(job.spec.endpoint)
        return await self._questions.read_long(lambda c: estimate_run(c, request, limit, visible))

    @shared
    async def ListCalls(self, request: pb.ListCallsRequest, visible: Visibility) -> pb.ListCallsResponse:
        return await self._questions.read(lambda c: calls.list_calls(c, request, visible))

    @shared
    async def GetCallUsage(self, request: pb.GetCallUsageRequest, visible: Visibility) -> pb.GetCallUsageResponse:
        return await self._questions.read(lambda c: calls.call_usage(c, request, visible))

    async def ListRecordedRuns(self, request: pb.ListRecordedRunsRequest, context: Any) -> pb.ListRecordedRunsResponse:
        owner = rpc.identity().user
        return await self._questions.read(lambda c: recorded.list_runs(c, request, owner))

    async def CloseRecordedRun(self, request: pb.CloseRecordedRunRequest, context: Any) -> pb.CloseRecordedRunResponse:
        assert self._recorded_runs is not None
        return await self._recorded_runs.close(rpc.identity().user, request.name)

    async def DeleteRecordedRun(
        self, request: pb.DeleteRecordedRunRequest, context: Any
    ) -> pb.DeleteRecordedRunResponse:
        assert self._recorded_runs is not None
        return pb.DeleteRecordedRunResponse(run=await self._recorded_runs.discard(rpc.identity().user, request.name))

    async def AnnotateItem(self, request: pb.AnnotateItemRequest, context: Any) -> pb.AnnotateItemResponse:
        caller, visible, now = rpc.identity(), self._visible(), _now()
        await self._database.write(lambda c: annotate(c, request, caller, now, visible))
        await self._statements.publish()
        of_item = pb.GetItemRequest(job_id=request.job_id, task=request.task, item=request.item, repeat=request.repeat)
        item = await self._database.read(lambda c: item_reads.get_item(c, of_item, visible))
        return pb.AnnotateItemResponse(item=item)

    async def JudgeRow(self, request: pb.JudgeRowRequest, context: Any) -> pb.JudgeRowResponse:
        caller, visible, now = rpc.identity(), self._visible(), _now()
        said = await self._database.write(lambda c: judge_row(c, request, caller, now, visible))
        await self._statements.publish()
        return pb.JudgeRowResponse(preference=said)

    @shared
    async def ListRatings(self, request: pb.ListRatingsRequest, visible: Visibility) -> pb.ListRatingsResponse:
        return await self._of_job(request.job_id, lambda c: ratings.list_ratings(c, request, visible))

    async def ListUnrated(self, request: pb.ListUnratedRequest, context: Any) -> pb.ListUnratedResponse:
        # Not shared: the caller is a part of the question.
        rater, visible = rpc.identity().user, self._visible()
        return await self._of_job(request.job_id, lambda c: ratings.list_unrated(c, request, rater, visible))

    async def RateAnswers(self, request: pb.RateAnswersRequest, context: Any) -> pb.RateAnswersResponse:
        rater, visible, now = rpc.identity().user, self._visible(), _now()
        stored = await self._database.write(lambda c: ratings.rate(c, request, rater, now, visible), of_jobs=False)
        await self._statements.publish()
        return stored

    async def Export(self, request: pb.ExportRequest, context: Any) -> AsyncGenerator[pb.ExportResponse]:
        visible = self._visible()
        await self._require_suite(request.jobs.suite, visible)
        async with aclosing(self._exports.serve(request, visible)) as pieces:
            async for piece in pieces:
                yield piece

    async def ImportAnswers(
        self, requests: AsyncIterator[pb.ImportAnswersRequest], context: Any
    ) -> pb.ImportAnswersResponse:
        return await store.take(self._database, self._room.guard(requests), rpc.identity().user, _now())

    @shared
    async def ListEvents(self, request: pb.ListEventsRequest, visible: Visibility) -> pb.ListEventsResponse:
        return await self._questions.read(lambda c: job_reads.list_events(c, request, visible))

    @of_jobs
    async def GetOverview(self, request: pb.GetOverviewRequest, visible: Visibility) -> pb.GetOverviewResponse:
        now = _now()
        answer = await self._questions.read(lambda c: overview(c, request, now, visible))
        if not answer.total_jobs:
            await self._require_suite(request.suite, visible)
        return answer

    @of_jobs
    async def ListTrends(self, request: pb.ListTrendsRequest, visible: Visibility) -> pb.ListTrendsResponse:
        now = _now()
        answer = await self._questions.read(lambda c: list_trends(c, request, now, visible))
        if not answer.trends:
            await self._require_suite(request.suite, visible)
        return answer

    @of_jobs
    async def ListConfigurations(
        self, request: pb.ListConfigurationsRequest, visible: Visibility
    ) -> pb.ListConfigurationsResponse:
        return await self._questions.read(lambda c: configurations.list_configurations(c, request, visible))

    async def NameConfiguration(
        self, request: pb.NameConfigurationRequest, context: Any
    ) -> pb.NameConfigurationResponse:
        caller, visible, now = rpc.identity(), self._visible(), _now()
        named = await self._database.write(
            lambda c: configurations.name_configuration(c, request, caller, now, visible)
        )
        await self._statements.publish()
        return pb.NameConfigurationResponse(configuration=named)

    async def MarkRun(self, request: pb.MarkRunRequest, context: Any) -> pb.MarkRunResponse:
        caller, visible, now = rpc.identity(), self._visible(), _now()
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

    async def _require_suite(self, suite: str, visible: Visibility) -> None:
        """Raises InvalidRequestError for a suite that neither runs nor evaluators name; while no evaluator has
        announced its suites, any suite may exist. A dataset's id is not checked."""
        if not suite or suite.startswith("ds_"):
            return
        try:
            await self._questions.read(lambda c: suite_metrics(c, suite, None, visible))
        except UnknownSuiteError:
            with contextlib.suppress(UnavailableError):
                if announced := await self._installation.suites():
                    await self._questions.read(lambda c: suite_metrics(c, suite, announced, visible))

    def _visible(self) -> Visibility:
        """What the caller may read. Determined here: reads run in threads, which do not know the caller."""
        return visibility.of_caller(self._reads)

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


def _now() -> datetime:
    """As the database has times: UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)
