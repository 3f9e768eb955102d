"""The two services as one in-process fake: the generated servicers over a dictionary of jobs.

It keeps the promises of the protos that the gateway relies on (idempotent creates, ten waiting jobs per owner,
states, watch streams, filters, pages), so that pages and REST are tested without NATS and DuckDB.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from services import rpc
from services.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
)
from services.scheduler.jobs.job import Job
from services.words import refusals
from tests.gateway import (
    fake_admission,
    fake_comparison,
    fake_data,
    fake_datasets,
    fake_decisions,
    fake_experiments,
    fake_figures,
    fake_items,
    fake_owned,
    fake_stored,
)
from tests.gateway.fake_world import LIVE, World
from touchstone.v1 import (
    dataset_service_pb2_grpc,
    job_pb2,
    metric_pb2,
    queue_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
)

PENDING_PER_OWNER, SLOTS = 10, 3


class Scheduler(fake_experiments.Runs, fake_decisions.Starts, scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """The scheduler's promises over the world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def CreateJob(self, request: Any, context: Any) -> Any:
        (job,) = self._create(request.request_id, [request.spec])
        return scheduler_service_pb2.CreateJobResponse(job=job)

    async def CreateJobs(self, request: Any, context: Any) -> Any:
        return scheduler_service_pb2.CreateJobsResponse(jobs=self._create(request.request_id, request.specs))

    def _create(self, request_id: str, specs: Sequence[job_pb2.JobSpec]) -> list[job_pb2.Job]:
        self.world.callers.append(rpc.identity())
        return fake_admission.created(self.world, request_id, specs)

    async def GetJob(self, request: Any, context: Any) -> Any:
        return scheduler_service_pb2.GetJobResponse(job=fake_admission.find(self.world, request.job_id))

    async def ListJobs(self, request: Any, context: Any) -> Any:
        found = [job for job in self.world.jobs.values() if job.job_id not in self.world.forgotten]
        found.sort(key=lambda job: -job.created_at.ToNanoseconds())
        return scheduler_service_pb2.ListJobsResponse(jobs=found[: request.page_size or 100])

    async def CancelJob(self, request: Any, context: Any) -> Any:
        job = fake_admission.find(self.world, request.job_id)
        fake_admission.require_owner(job)
        Job(job).cancel(rpc.identity().user, time.time())
        self.world.touch()
        return scheduler_service_pb2.CancelJobResponse(job=job)

    async def DeleteJob(self, request: Any, context: Any) -> Any:
        job = fake_admission.find(self.world, request.job_id)
        fake_admission.require_owner(job)
        Job(job).delete(time.time())
        del self.world.jobs[request.job_id]
        self.world.results.pop(request.job_id, None)
        self.world.touch()
        return scheduler_service_pb2.DeleteJobResponse()

    async def RetryJob(self, request: Any, context: Any) -> Any:
        job = fake_admission.retried(self.world, request.job_id)
        self.world.touch()
        return scheduler_service_pb2.RetryJobResponse(job=job)

    async def SetJobPriority(self, request: Any, context: Any) -> Any:
        rpc.require_admin()
        job = fake_admission.find(self.world, request.job_id)
        if job.state != job_pb2.Job.STATE_PENDING:
            raise ConflictError(f"Job {job.job_id} is not waiting.")
        job.spec.priority = request.priority
        self.world.touch()
        return scheduler_service_pb2.SetJobPriorityResponse(job=job)

    async def WatchJob(self, request: Any, context: Any) -> AsyncIterator[Any]:
        while True:
            changed = self.world.changed
            job = fake_admission.find(self.world, request.job_id)
            yield scheduler_service_pb2.WatchJobResponse(job=job)
            if job.state not in LIVE:
                return
            await changed.wait()
            await asyncio.sleep(0.1)

    async def GetQueue(self, request: Any, context: Any) -> Any:
        self.world.queued.append(request)
        queue = queue_pb2.Queue(
            running=self.world.holding(),
            pending=self.world.waiting(),
            slots=SLOTS,
            pending_per_owner=PENDING_PER_OWNER,
            evaluators=3,
            notice=self.world.notice,
        )
        return scheduler_service_pb2.GetQueueResponse(queue=queue)

    async def ListEvaluators(self, request: Any, context: Any) -> Any:
        one = fake_data.evaluator()
        one.draining = one.drain_requested = self.world.drained
        return scheduler_service_pb2.ListEvaluatorsResponse(evaluators=[one])

    async def SetEvaluatorDrain(self, request: Any, context: Any) -> Any:
        rpc.require_admin()
        one = fake_data.evaluator()
        if request.evaluator != one.evaluator:
            raise NotFoundError(f"Evaluator {request.evaluator} not found")
        self.world.drained = request.drain
        one.draining = one.drain_requested = request.drain
        return scheduler_service_pb2.SetEvaluatorDrainResponse(evaluator=one)

    async def ListEndpoints(self, request: Any, context: Any) -> Any:
        answer = scheduler_service_pb2.ListEndpointsResponse(endpoints=fake_data.endpoints())
        for endpoint in answer.endpoints:
            endpoint.ClearField("models")
        return answer

    async def ListModels(self, request: Any, context: Any) -> Any:
        models = fake_data.models()
        if request.endpoint not in models:
            raise NotFoundError(f"Endpoint {request.endpoint!r} was never announced.")
        return scheduler_service_pb2.ListModelsResponse(models=models[request.endpoint])

    async def ListSuites(self, request: Any, context: Any) -> Any:
        return scheduler_service_pb2.ListSuitesResponse(suites=fake_data.suites(self.world.suites))

    async def ListJobLogs(self, request: Any, context: Any) -> Any:
        return fake_owned.list_job_logs(self.world, request)

    async def CreateSchedule(self, request: Any, context: Any) -> Any:
        return fake_owned.create_schedule(self.world, request)

    async def StartWatch(self, request: Any, context: Any) -> Any:
        return fake_owned.start_watch(self.world, request)

    async def ListSchedules(self, request: Any, context: Any) -> Any:
        return fake_owned.list_schedules(self.world, request)

    async def SetSchedulePaused(self, request: Any, context: Any) -> Any:
        return fake_owned.set_paused(self.world, request)

    async def DeleteSchedule(self, request: Any, context: Any) -> Any:
        return fake_owned.delete_schedule(self.world, request.schedule_id)

    async def ListSetAsideMessages(self, request: Any, context: Any) -> Any:
        return fake_owned.list_set_aside(self.world, request)

    async def CreateWebhook(self, request: Any, context: Any) -> Any:
        return fake_owned.create_webhook(self.world, request)

    async def ListWebhooks(self, request: Any, context: Any) -> Any:
        return fake_owned.list_webhooks(self.world, request)

    async def DeleteWebhook(self, request: Any, context: Any) -> Any:
        return fake_owned.delete_webhook(self.world, request.webhook_id)

    async def ListDeadDeliveries(self, request: Any, context: Any) -> Any:
        return fake_owned.dead(self.world, request)

    async def RedeliverWebhook(self, request: Any, context: Any) -> Any:
        return fake_owned.redeliver(self.world, request.delivery_id)


class Results(fake_experiments.Boards, fake_decisions.Found, results_service_pb2_grpc.ResultsServiceServicer):
    """The results service's promises over the world."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _job(self, job_id: str) -> job_pb2.Job:
        if job_id not in self.world.jobs:
            raise NotFoundError(refusals.not_found("Benchmark job", job_id))
        return self.world.jobs[job_id]

    async def GetDigest(self, request: Any, context: Any) -> Any:
        self.world.digest.begin_at.CopyFrom(request.begin_at)
        self.world.digest.end_at.CopyFrom(request.end_at)
        return results_service_pb2.GetDigestResponse(digest=self.world.digest)

    async def GetWatch(self, request: Any, context: Any) -> Any:
        if request.schedule_id not in self.world.watches:
            raise NotFoundError(f"Watch {request.schedule_id} not found. If it is new, wait for its first run.")
        return results_service_pb2.GetWatchResponse(watch=self.world.watches[request.schedule_id])

    async def GetJob(self, request: Any, context: Any) -> Any:
        return fake_figures.get_job(self.world, request, self._job(request.job_id))

    async def ListJobs(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_figures.list_jobs(self.world, request)

    async def GetJobResult(self, request: Any, context: Any) -> Any:
        named = fake_figures.name_of(self.world, self._job(request.job_id))
        answer = results_service_pb2.GetJobResultResponse(
            result=self.world.results.get(request.job_id, metric_pb2.JobResult(job_id=request.job_id))
        )
        answer.result.name, answer.result.alias = named.name, named.alias
        return answer

    async def GetLeaderboard(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        entries = self.world.boards.get(request.suite)
        if not entries:
            return fake_stored.leaderboard(self.world, request)
        answer = results_service_pb2.GetLeaderboardResponse(metrics=["accuracy", "f1", "matthews_correlation"])
        answer.item_sets.extend(self.world.item_sets)
        chosen = request.item_set or "7f3ac1d9"
        if chosen not in ("7f3ac1d9", *(one.item_set for one in self.world.item_sets)):
            raise InvalidRequestError(
                f"No finished run of {request.suite} uses the item set {chosen!r}. Use one of the leaderboard's "
                "item_sets, or leave it out.",
                "item_set",
            )
        ranked = [e for e in entries if e.rank]
        answer.entries.extend(e for e in entries if not e.rank or e.rank <= (request.limit or 10))
        answer.total_models = len(ranked)
        answer.places_pending = len(ranked) > 1 and not any(e.rank_low for e in ranked)
        answer.last_updated.CopyFrom(max((e.completed_at for e in entries), key=lambda t: t.ToNanoseconds()))
        answer.item_set, answer.subset, answer.items, answer.published_items = chosen, True, 2933, 58379
        return answer

    async def ListItems(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_stored.list_items(self.world, request)

    async def GetItem(self, request: Any, context: Any) -> Any:
        return fake_stored.get_item(self.world, request)

    async def AnnotateItem(self, request: Any, context: Any) -> Any:
        return fake_stored.annotate(self.world, request)

    async def ListSideBySide(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_stored.side_by_side(self.world, request)

    async def JudgeRow(self, request: Any, context: Any) -> Any:
        return fake_stored.judge_row(self.world, request)

    async def ListJudges(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        fake_admission.find(self.world, request.job_id)
        return self.world.judges.get(request.job_id, results_service_pb2.ListJudgesResponse())

    async def ListUnrated(self, request: Any, context: Any) -> Any:
        return fake_stored.list_unrated(self.world, request)

    async def RateAnswers(self, request: Any, context: Any) -> Any:
        return fake_stored.rate(self.world, request)

    async def ListRatings(self, request: Any, context: Any) -> Any:
        return fake_stored.list_ratings(self.world, request)

    async def EstimateRun(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_items.estimate(self.world, request)

    async def ListCalls(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return results_service_pb2.ListCallsResponse(calls=self.world.calls)

    async def GetCallUsage(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return results_service_pb2.GetCallUsageResponse(usage=self.world.usage)

    async def ListRecordedRuns(self, request: Any, context: Any) -> Any:
        return results_service_pb2.ListRecordedRunsResponse(runs=[one.run for one in self.world.recorded.values()])

    async def CloseRecordedRun(self, request: Any, context: Any) -> Any:
        return self._recorded(request.name)

    async def DeleteRecordedRun(self, request: Any, context: Any) -> Any:
        return results_service_pb2.DeleteRecordedRunResponse(run=self._recorded(request.name).run)

    def _recorded(self, name: str) -> results_service_pb2.CloseRecordedRunResponse:
        if name not in self.world.recorded:
            raise NotFoundError(f"No recorded run has the name {name!r}.")
        return self.world.recorded[name]

    async def ListEvents(self, request: Any, context: Any) -> Any:
        return results_service_pb2.ListEventsResponse()

    async def SealJob(self, request: Any, context: Any) -> Any:
        return results_service_pb2.SealJobResponse()

    async def ListStoredItems(self, request: Any, context: Any) -> Any:
        return results_service_pb2.ListStoredItemsResponse()

    async def FindResponses(self, request: Any, context: Any) -> Any:
        return results_service_pb2.FindResponsesResponse()

    async def GetOverview(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_figures.overview(self.world, request)

    async def ListTrends(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_figures.trends(self.world, request)

    async def ListConfigurations(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_figures.configurations(self.world, request)

    async def NameConfiguration(self, request: Any, context: Any) -> Any:
        return fake_figures.name_configuration(self.world, request)

    async def MarkRun(self, request: Any, context: Any) -> Any:
        return fake_figures.mark_run(self.world, request)

    async def Compare(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_comparison.compare(self.world, request)

    async def GetNoise(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_comparison.noise(self.world, request)

    async def GetReplay(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_comparison.replay(self.world, request)

    async def GetImport(self, request: Any, context: Any) -> Any:
        return results_service_pb2.GetImportResponse()

    async def ImportAnswers(self, requests: Any, context: Any) -> Any:
        return results_service_pb2.ImportAnswersResponse()

    async def Export(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self.world.asked.append(request)
        fake_figures.require_suite(request.jobs.suite, self.world)
        for piece in fake_stored.export(self.world, request):
            yield piece


class Datasets(dataset_service_pb2_grpc.DatasetServiceServicer):
    """The promises of the service that keeps datasets, over the world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def UploadDataset(self, requests: Any, context: Any) -> Any:
        return await fake_datasets.upload(self.world, requests)

    async def PreviewDataset(self, requests: Any, context: Any) -> Any:
        return await fake_datasets.preview_of(requests)

    async def CreateHubDataset(self, request: Any, context: Any) -> Any:
        return await fake_datasets.create_from_hub(self.world, request)

    async def GetDataset(self, request: Any, context: Any) -> Any:
        return fake_datasets.get(self.world, request)

    async def ListDatasets(self, request: Any, context: Any) -> Any:
        self.world.asked.append(request)
        return fake_datasets.list_(self.world, request)

    async def ListDatasetRows(self, request: Any, context: Any) -> Any:
        return fake_datasets.list_rows(self.world, request)

    async def DeleteDataset(self, request: Any, context: Any) -> Any:
        return fake_datasets.delete(self.world, request)


@asynccontextmanager
async def serve_scheduler(world: World, address: str, service_token: str = "") -> AsyncIterator[None]:
    authenticate = rpc.Authenticator(_nobody if service_token else None, service_token)
    register = scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server
    name = "touchstone.v1.SchedulerService"
    async with rpc.serve(address, authenticate, [(register, Scheduler(world), name)], grace_s=0.1) as server:
        await server.set_ready(True)
        yield


@asynccontextmanager
async def serve_results(world: World, address: str, service_token: str = "") -> AsyncIterator[None]:
    authenticate = rpc.Authenticator(_nobody if service_token else None, service_token)
    register = results_service_pb2_grpc.add_ResultsServiceServicer_to_server
    name = "touchstone.v1.ResultsService"
    datasets = dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server
    served: list[tuple[Callable[[Any, Any], None], Any, str]] = [
        (register, Results(world), name),
        (datasets, Datasets(world), "touchstone.v1.DatasetService"),
    ]
    async with rpc.serve(address, authenticate, served, grace_s=0.1) as server:
        await server.set_ready(True)
        yield


async def _nobody(digest: str) -> None:
    return None
