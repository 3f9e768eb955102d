"""SchedulerService: unpacks requests, asks the desk, packs answers. UNAVAILABLE while this process is a standby."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from services import rpc
from services.errors import InvalidRequestError, UnavailableError
from services.scheduler.desk import Desk
from services.scheduler.fleet import Fleet
from touchstone.v1 import endpoint_pb2, job_pb2, scheduler_service_pb2_grpc
from touchstone.v1 import scheduler_service_pb2 as pb

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Leader:
    """What answers while this process leads."""

    desk: Desk
    fleet: Fleet


class Servicer(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """`leader` gives who answers, None on a standby; `holder` the name of the process that leads."""

    def __init__(
        self, leader: Callable[[], Leader | None], holder: Callable[[], str], now: Callable[[], float]
    ) -> None:
        self._leader, self._holder, self._now = leader, holder, now

    def _lead(self) -> Leader:
        leader = self._leader()
        if leader is None:
            holder = self._holder()
            who = f"{holder} leads" if holder else "nobody leads yet"
            raise UnavailableError(f"This scheduler is a standby ({who}); ask again.")
        return leader

    @property
    def _desk(self) -> Desk:
        return self._lead().desk

    @property
    def _fleet(self) -> Fleet:
        return self._lead().fleet

    async def CreateJob(self, request: pb.CreateJobRequest, context: Any) -> pb.CreateJobResponse:
        job = await self._desk.create(rpc.identity(), request.request_id, request.spec)
        return pb.CreateJobResponse(job=job)

    async def GetJob(self, request: pb.GetJobRequest, context: Any) -> pb.GetJobResponse:
        return pb.GetJobResponse(job=self._desk.get(request.job_id))

    async def ListJobs(self, request: pb.ListJobsRequest, context: Any) -> pb.ListJobsResponse:
        jobs = self._desk.list(request.owner)
        page, token = paged(jobs, request.page_size, request.page_token, 100, 500, _newest_first)
        return pb.ListJobsResponse(jobs=page, next_page_token=token)

    async def CancelJob(self, request: pb.CancelJobRequest, context: Any) -> pb.CancelJobResponse:
        return pb.CancelJobResponse(job=await self._desk.cancel(rpc.identity(), request.job_id))

    async def RetryJob(self, request: pb.RetryJobRequest, context: Any) -> pb.RetryJobResponse:
        return pb.RetryJobResponse(job=await self._desk.retry(rpc.identity(), request.job_id))

    async def WatchJob(self, request: pb.WatchJobRequest, context: Any) -> AsyncIterator[pb.WatchJobResponse]:
        async for job in self._desk.watch(request.job_id):
            yield pb.WatchJobResponse(job=job)

    async def GetQueue(self, request: pb.GetQueueRequest, context: Any) -> pb.GetQueueResponse:
        return pb.GetQueueResponse(queue=self._desk.queue())

    async def ListEvaluators(self, request: pb.ListEvaluatorsRequest, context: Any) -> pb.ListEvaluatorsResponse:
        found = self._fleet.evaluators(self._now())
        page, token = paged(found, request.page_size, request.page_token, 100, 500, lambda e: e.evaluator)
        return pb.ListEvaluatorsResponse(evaluators=page, next_page_token=token)

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
    # Increasing while the list goes back in time.
    return f"{10**20 - job.created_at.ToNanoseconds():020d}.{job.job_id[::-1]}"


def _without_models(endpoint: endpoint_pb2.Endpoint) -> endpoint_pb2.Endpoint:
    copy = endpoint_pb2.Endpoint()
    copy.CopyFrom(endpoint)
    del copy.models[:]
    return copy


def paged(
    found: Sequence[T], size: int, token: str, default: int, most: int, key: Callable[[T], str]
) -> tuple[list[T], str]:
    """One page of a list sorted by `key`, and the token of the next. Raises InvalidRequestError."""
    if not 0 <= size <= most:
        raise InvalidRequestError(f"page_size may be 0 to {most}.", "page_size")
    try:
        after = base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError("page_token is not one that this service gave.", "page_token") from error
    rest = [entry for entry in found if key(entry) > after] if token else list(found)
    page = rest[: size or default]
    more = len(rest) > len(page)
    return page, base64.urlsafe_b64encode(key(page[-1]).encode()).decode() if more else ""
