"""The calls of ResultsService that only read: each is one question to a database, or to a copy of one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from services import rpc
from services.bus import Datasets
from services.errors import NotFoundError, UnavailableError
from services.results import visibility
from services.results.boards.leaderboard import UnknownSuiteError, leaderboard, suite_metrics
from services.results.boards.overview import list_trends, overview
from services.results.calls import reads as calls
from services.results.calls import recorded
from services.results.comparison.compare import compare
from services.results.comparison.noise import get_noise
from services.results.comparison.rank_ranges import BoardRankRanges
from services.results.comparison.replay import get_replay
from services.results.decisions import reads as decisions
from services.results.digests.reads import get_digest
from services.results.estimates.estimate import estimate_run
from services.results.experiments import board, runs, stored
from services.results.export.exports import Exports
from services.results.installation import Installation
from services.results.items import reads as item_reads
from services.results.judging import ratings
from services.results.judging.reads import list_judges
from services.results.read_queue import KeptAnswers, Questions
from services.results.runs import configurations, job_reads
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection, Reads
from services.results.visibility import Visibility
from services.results.watches.reads import get_watch
from touchstone.v1 import comparison_pb2
from touchstone.v1 import results_service_pb2 as pb

Read = TypeVar("Read")
Request = TypeVar("Request", bound=Message)
Answer = TypeVar("Answer")


def shared(
    answer: Callable[[ReadServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
    lasts: Callable[[Answer], bool] | None = None,
) -> Callable[[ReadServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """A call that only reads: equal ones at the same time are answered once."""

    @wraps(answer)
    async def call(self: ReadServicer, request: Request, context: Any) -> Answer:
        visible = self._visible()
        return await self._questions.once(request, visible, lambda: answer(self, request, visible), lasts)

    return call


def of_admins(
    answer: Callable[[ReadServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
) -> Callable[[ReadServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """As `shared`. Raises PermissionDeniedError for other callers."""
    answered = shared(answer)

    @wraps(answer)
    async def call(self: ReadServicer, request: Request, context: Any) -> Answer:
        rpc.require_admin()
        return await answered(self, request, context)

    return call


def of_jobs(
    answer: Callable[[ReadServicer, Request, Visibility], Coroutine[Any, Any, Answer]],
) -> Callable[[ReadServicer, Request, Any], Coroutine[Any, Any, Answer]]:
    """As `shared`. The answer holds until a job changes: it depends on no answers or calls that come in meanwhile."""
    return shared(answer, lambda found: not getattr(found, "places_pending", False))


class ReadServicer:
    """`installation` is queried only for what is not stored: suites that no run names, limits of endpoints. `reads` is
    the setting. `store` has the pictures of rows."""

    def __init__(
        self,
        database: Reads,
        installation: Installation,
        questions: Questions,
        reads: str = visibility.OPEN,
        store: Datasets | None = None,
    ) -> None:
        self._installation = installation
        self._reads = reads
        self._exports = Exports(database, store)
        self._questions = questions
        self._places = BoardRankRanges(database)
        # Ratings and judgements count in them, too.
        self._experiment_boards = KeptAnswers(lambda: database.version)
        self._side_by_side = SideBySide()

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

    @shared
    async def ListDecisions(self, request: pb.ListDecisionsRequest, visible: Visibility) -> pb.ListDecisionsResponse:
        return await self._questions.read_long(lambda c: decisions.list_decisions(c, request, visible))

    @shared
    async def GetDecision(self, request: pb.GetDecisionRequest, visible: Visibility) -> pb.GetDecisionResponse:
        job_id = request.decision_id
        return await self._of_job(job_id, lambda c: decisions.get_decision(c, job_id, visible))

    @shared
    async def GetNoise(self, request: pb.GetNoiseRequest, visible: Visibility) -> pb.GetNoiseResponse:
        return await self._questions.read_long(lambda c: get_noise(c, request, visible))

    @shared
    async def GetDigest(self, request: pb.GetDigestRequest, visible: Visibility) -> pb.GetDigestResponse:
        return await self._questions.read_with_copies(lambda c, copies: get_digest(c, request, visible, copies))

    @shared
    async def GetWatch(self, request: pb.GetWatchRequest, visible: Visibility) -> pb.GetWatchResponse:
        found = await self._questions.read_long(lambda c: get_watch(c, request.schedule_id, visible))
        return pb.GetWatchResponse(watch=found)

    @shared
    async def GetReplay(self, request: pb.GetReplayRequest, visible: Visibility) -> pb.GetReplayResponse:
        return await self._questions.read_long(lambda c: get_replay(c, request, visible))

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

    @shared
    async def ListRatings(self, request: pb.ListRatingsRequest, visible: Visibility) -> pb.ListRatingsResponse:
        return await self._of_job(request.job_id, lambda c: ratings.list_ratings(c, request, visible))

    async def ListUnrated(self, request: pb.ListUnratedRequest, context: Any) -> pb.ListUnratedResponse:
        # Not shared: the caller is a part of the question.
        rater, visible = rpc.identity().user, self._visible()
        return await self._of_job(request.job_id, lambda c: ratings.list_unrated(c, request, rater, visible))

    async def Export(self, request: pb.ExportRequest, context: Any) -> AsyncGenerator[pb.ExportResponse]:
        visible = self._visible()
        await self._require_suite(request.jobs.suite, visible)
        async with aclosing(self._exports.serve(request, visible)) as pieces:
            async for piece in pieces:
                yield piece

    @shared
    async def ListEvents(self, request: pb.ListEventsRequest, visible: Visibility) -> pb.ListEventsResponse:
        return await self._questions.read(lambda c: job_reads.list_events(c, request, visible))

    @of_jobs
    async def GetOverview(self, request: pb.GetOverviewRequest, visible: Visibility) -> pb.GetOverviewResponse:
        now = now_utc()
        answer = await self._questions.read(lambda c: overview(c, request, now, visible))
        if not answer.total_jobs:
            await self._require_suite(request.suite, visible)
        return answer

    @of_jobs
    async def ListTrends(self, request: pb.ListTrendsRequest, visible: Visibility) -> pb.ListTrendsResponse:
        now = now_utc()
        answer = await self._questions.read(lambda c: list_trends(c, request, now, visible))
        if not answer.trends:
            await self._require_suite(request.suite, visible)
        return answer

    @of_jobs
    async def ListConfigurations(
        self, request: pb.ListConfigurationsRequest, visible: Visibility
    ) -> pb.ListConfigurationsResponse:
        return await self._questions.read(lambda c: configurations.list_configurations(c, request, visible))

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
        """Reads data of a job."""
        return await self._questions.read(read)


def now_utc() -> datetime:
    """As the database has times: UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)
