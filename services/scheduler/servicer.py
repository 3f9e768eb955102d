"""SchedulerService: unpacks requests, calls the leader's parts, packs answers. UNAVAILABLE while this process is a
standby."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from services import rpc
from services.bus import Room
from services.errors import InvalidRequestError, StandbyError
from services.scheduler.admission import decision_rules
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.nats.jobs_bucket import Drains
from services.scheduler.requests.experiments import Experiments
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.paging import paged
from services.scheduler.requests.visibility import Reads
from services.scheduler.schedules.schedules import Timetable
from services.scheduler.schedules.watches import Watches
from services.scheduler.webhooks.requests import WebhookDesk
from touchstone.v1 import endpoint_pb2, job_pb2, schedule_pb2, scheduler_service_pb2_grpc, webhook_pb2
from touchstone.v1 import scheduler_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Leader:
    """What answers while this process leads."""

    desk: Desk
    fleet: Fleet
    timetable: Timetable
    webhooks: WebhookDesk
    drains: Drains
    experiments: Experiments
    registry: JobRegistry
    watches: Watches


SetAside = Callable[[pb.ListSetAsideMessagesRequest], Awaitable[pb.ListSetAsideMessagesResponse]]
Logs = Callable[[pb.ListJobLogsRequest], Awaitable[pb.ListJobLogsResponse]]


class Servicer(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """`leader` gives the parts that answer, None on a standby; `why_not` then says why, for users. `logs` has what
    services logged about a job, `set_aside` the messages that they could not handle."""

    def __init__(
        self,
        leader: Callable[[], Leader | None],
        why_not: Callable[[], str],
        now: Callable[[], float],
        reads: Reads,
        logs: Logs,
        set_aside: SetAside,
        room: Room | None = None,
    ) -> None:
        self._room = room or Room()
        self._leader, self._why_not, self._now = leader, why_not, now
        self._reads, self._logs, self._set_aside = reads, logs, set_aside

    def _lead(self) -> Leader:
        leader = self._leader()
        if leader is None:
            # Without room NATS cannot keep a lease, so there is no leader.
            self._room.require()
            raise StandbyError(self._why_not())
        return leader

    @property
    def _desk(self) -> Desk:
        return self._lead().desk

    @property
    def _fleet(self) -> Fleet:
        return self._lead().fleet

    async def CreateJob(self, request: pb.CreateJobRequest, context: Any) -> pb.CreateJobResponse:
        caller, leader = rpc.identity(), self._lead()
        job = await leader.desk.create(caller, request.request_id, request.spec)
        secret = await leader.webhooks.job_secret(caller.user) if job.spec.webhook_url else ""
        return pb.CreateJobResponse(job=job, webhook_secret=secret)

    async def CreateJobs(self, request: pb.CreateJobsRequest, context: Any) -> pb.CreateJobsResponse:
        caller, leader = rpc.identity(), self._lead()
        jobs = await leader.desk.create_all(caller, request.request_id, request.specs)
        called = any(job.spec.webhook_url for job in jobs)
        secret = await leader.webhooks.job_secret(caller.user) if called else ""
        return pb.CreateJobsResponse(jobs=jobs, webhook_secret=secret)

    async def RunExperiment(self, request: pb.RunExperimentRequest, context: Any) -> pb.RunExperimentResponse:
        return await self._lead().experiments.run(rpc.require_admin(), request)

    async def StartDecision(self, request: pb.StartDecisionRequest, context: Any) -> pb.StartDecisionResponse:
        sides, specs, desk = decision_rules.sides(request), decision_rules.specs(request), self._desk
        baseline, candidate, *further = await desk.create_all(rpc.identity(), request.request_id, specs, sides)
        return pb.StartDecisionResponse(
            decision_id=baseline.job_id, baseline=baseline, candidate=candidate, further_candidates=further
        )

    async def GetJob(self, request: pb.GetJobRequest, context: Any) -> pb.GetJobResponse:
        return pb.GetJobResponse(job=self._reads.job(rpc.identity(), self._desk.get(request.job_id)))

    async def ListJobs(self, request: pb.ListJobsRequest, context: Any) -> pb.ListJobsResponse:
        jobs = self._reads.jobs(rpc.identity(), self._desk.list(request.owner, request.project_id))
        page, token = paged(jobs, request.page_size, request.page_token, 100, 500, _newest_first)
        return pb.ListJobsResponse(jobs=page, next_page_token=token)

    async def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.CancelJobResponse:
        return pb.CancelJobResponse(job=await self._desk.cancel(rpc.identity(), request.job_id))

    async def DeleteJob(self, request: pb.DeleteJobRequest, context: Any) -> pb.DeleteJobResponse:
        await self._desk.delete(rpc.identity(), request.job_id)
        return pb.DeleteJobResponse()

    async def RetryJob(self, request: pb.RetryJobRequest, context: Any) -> pb.RetryJobResponse:
        return pb.RetryJobResponse(job=await self._desk.retry(rpc.identity(), request.job_id))

    async def SetJobPriority(self, request: pb.SetJobPriorityRequest, context: Any) -> pb.SetJobPriorityResponse:
        rpc.require_admin()
        job = await self._desk.set_priority(rpc.identity(), request.job_id, request.priority)
        return pb.SetJobPriorityResponse(job=job)

    async def WatchJob(self, request: pb.WatchJobRequest, context: Any) -> AsyncIterator[pb.WatchJobResponse]:
        caller = rpc.identity()
        async for job in self._desk.watch(request.job_id):
            yield pb.WatchJobResponse(job=self._reads.job(caller, job))

    async def ListJobLogs(self, request: pb.ListJobLogsRequest, context: Any) -> pb.ListJobLogsResponse:
        await self._desk.visible(rpc.identity(), request.job_id)
        return await self._logs(request)

    async def ListSetAsideMessages(
        self, request: pb.ListSetAsideMessagesRequest, context: Any
    ) -> pb.ListSetAsideMessagesResponse:
        rpc.require_admin()
        return await self._set_aside(request)

    async def GetQueue(self, request: pb.GetQueueRequest, context: Any) -> pb.GetQueueResponse:
        return pb.GetQueueResponse(queue=self._reads.queue(rpc.identity(), self._desk.queue(request.project_id)))

    # -- schedules ---------------------------------------------------------------------------------------------

    async def CreateSchedule(self, request: pb.CreateScheduleRequest, context: Any) -> pb.CreateScheduleResponse:
        decision = request.decision if request.HasField("decision") else None
        if decision is not None and request.HasField("spec"):
            raise InvalidRequestError("A schedule creates jobs or decisions. Leave spec or decision out.", "decision")
        schedule = await self._lead().timetable.create(
            rpc.identity(),
            request.request_id,
            request.cron,
            request.time_zone,
            request.spec if decision is None else decision.baseline,
            request.label,
            decision=decision,
        )
        return pb.CreateScheduleResponse(schedule=schedule)

    async def StartWatch(self, request: pb.StartWatchRequest, context: Any) -> pb.StartWatchResponse:
        return pb.StartWatchResponse(schedule=await self._lead().watches.start(rpc.identity(), request))

    async def ListSchedules(self, request: pb.ListSchedulesRequest, context: Any) -> pb.ListSchedulesResponse:
        found = self._lead().timetable.list(rpc.identity(), request.owner, request.project_id)
        page, token = paged(found, request.page_size, request.page_token, 100, 500, _oldest_schedule_first)
        return pb.ListSchedulesResponse(schedules=page, next_page_token=token)

    async def SetSchedulePaused(
        self, request: pb.SetSchedulePausedRequest, context: Any
    ) -> pb.SetSchedulePausedResponse:
        made = await self._lead().timetable.set_paused(rpc.identity(), request.schedule_id, request.paused)
        return pb.SetSchedulePausedResponse(schedule=made)

    async def DeleteSchedule(self, request: pb.DeleteScheduleRequest, context: Any) -> pb.DeleteScheduleResponse:
        await self._lead().timetable.delete(rpc.identity(), request.schedule_id)
        return pb.DeleteScheduleResponse()

    # -- webhooks ----------------------------------------------------------------------------------------------

    async def CreateWebhook(self, request: pb.CreateWebhookRequest, context: Any) -> pb.CreateWebhookResponse:
        made = await self._lead().webhooks.create(rpc.identity(), request.url, request.events, request.project_id)
        return pb.CreateWebhookResponse(webhook=made.webhook, secret=made.secret)

    async def ListWebhooks(self, request: pb.ListWebhooksRequest, context: Any) -> pb.ListWebhooksResponse:
        found = await self._lead().webhooks.all_of(rpc.identity(), request.project_id)
        page, token = paged(found, request.page_size, request.page_token, 100, 500, _oldest_webhook_first)
        return pb.ListWebhooksResponse(webhooks=page, next_page_token=token)

    async def DeleteWebhook(self, request: pb.DeleteWebhookRequest, context: Any) -> pb.DeleteWebhookResponse:
        await self._lead().webhooks.delete(rpc.identity(), request.webhook_id)
        return pb.DeleteWebhookResponse()

    async def ListDeadDeliveries(
        self, request: pb.ListDeadDeliveriesRequest, context: Any
    ) -> pb.ListDeadDeliveriesResponse:
        found = await self._lead().webhooks.dead(rpc.identity())
        page, token = paged(found, request.page_size, request.page_token, 100, 500, _newest_delivery_first)
        return pb.ListDeadDeliveriesResponse(deliveries=page, next_page_token=token)

    async def RedeliverWebhook(self, request: pb.RedeliverWebhookRequest, context: Any) -> pb.RedeliverWebhookResponse:
        delivery = await self._lead().webhooks.redeliver(rpc.identity(), request.delivery_id)
        return pb.RedeliverWebhookResponse(delivery=delivery)

    # -- what there is -----------------------------------------------------------------------------------------

    async def ListEvaluators(self, request: pb.ListEvaluatorsRequest, context: Any) -> pb.ListEvaluatorsResponse:
        found = self._fleet.evaluators(self._now())
        page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda e: e.evaluator)
        return pb.ListEvaluatorsResponse(evaluators=page, next_page_token=token)

    async def SetEvaluatorDrain(
        self, request: pb.SetEvaluatorDrainRequest, context: Any
    ) -> pb.SetEvaluatorDrainResponse:
        rpc.require_admin()
        user = rpc.identity().user
        one = await self._lead().drains.set(request.evaluator, request.drain, user, self._now())
        return pb.SetEvaluatorDrainResponse(evaluator=one)

    async def ListEndpoints(self, request: pb.ListEndpointsRequest, context: Any) -> pb.ListEndpointsResponse:
        found = [_without_models(e) for e in self._fleet.endpoints(self._now())]
        page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda e: e.endpoint)
        return pb.ListEndpointsResponse(endpoints=page, next_page_token=token)

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        endpoint = self._fleet.endpoint(request.endpoint, self._now())
        models = sorted(endpoint.models, key=lambda m: m.model)
        page, token = paged(models, request.page_size, request.page_token, 500, 1000, lambda m: m.model)
        return pb.ListModelsResponse(endpoint=_without_models(endpoint), models=page, next_page_token=token)

    async def ListSuites(self, request: pb.ListSuitesRequest, context: Any) -> pb.ListSuitesResponse:
        suites = sorted(self._fleet.suites(self._now()), key=lambda s: s.suite)
        page, token = paged(suites, request.page_size, request.page_token, 100, 500, lambda s: s.suite)
        return pb.ListSuitesResponse(suites=page, next_page_token=token)


def _newest_first(job: job_pb2.Job) -> str:
    return f"{_back(job.created_at)}.{job.job_id[::-1]}"


def _newest_delivery_first(delivery: webhook_pb2.Delivery) -> str:
    return f"{_back(delivery.last_try_at)}.{delivery.delivery_id}"


def _oldest_schedule_first(schedule: schedule_pb2.Schedule) -> str:
    return f"{schedule.created_at.ToNanoseconds():020d}.{schedule.schedule_id}"


def _oldest_webhook_first(webhook: webhook_pb2.Webhook) -> str:
    return f"{webhook.created_at.ToNanoseconds():020d}.{webhook.webhook_id}"


def _back(moment: Timestamp) -> str:
    """Increasing while a list goes back in time."""
    return f"{10**20 - moment.ToNanoseconds():020d}"


def _without_models(endpoint: endpoint_pb2.Endpoint) -> endpoint_pb2.Endpoint:
    copy = endpoint_pb2.Endpoint()
    copy.CopyFrom(endpoint)
    del copy.models[:]
    return copy
