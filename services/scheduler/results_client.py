"""The scheduler's client of the results service. It may be down for long: nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc

from services import rpc
from services.bus import of_job
from services.errors import DeadlineError, TouchstoneError, UnavailableError
from services.scheduler.jobs.job import Job
from services.words.jobs import LIVE
from touchstone.v1 import (
    dataset_pb2,
    decision_pb2,
    digest_pb2,
    job_pb2,
    metric_pb2,
    results_internal_service_pb2,
    results_internal_service_pb2_grpc,
    results_service_pb2,
    results_service_pb2_grpc,
    watch_pb2,
)

_SEAL_S = 30.0
_ASK_S = 10.0
_EVIDENCE_S = 30.0
"""A race of 20 models over 14,000 items has 190 pairs: some seconds."""
_PREPARE_S = 120.0
_DIGEST_S = 60.0
_PAGE = 200


class ResultsClient:
    """Results over gRPC. Failures come as errors of `services.errors`."""

    def __init__(self, channel: grpc.aio.Channel, service_token: str) -> None:
        self._stub = results_service_pb2_grpc.ResultsServiceStub(channel)
        self._internal = results_internal_service_pb2_grpc.ResultsInternalServiceStub(channel)
        self._metadata = rpc.metadata(service_token)

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        request = results_service_pb2.SealJobRequest(job=job, results_sequence=sequence)
        request.job.spec.ClearField("webhook_url")
        try:
            return await self._internal.SealJob(request, timeout=_SEAL_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error

    async def stored(self, job_id: str, sequence: int) -> dict[str, set[int]]:
        request = results_service_pb2.ListStoredItemsRequest(job_id=job_id, results_sequence=sequence)
        try:
            answer = await self._internal.ListStoredItems(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return {task.task: set(task.positions) for task in answer.tasks}

    async def job(self, job_id: str) -> job_pb2.Job:
        request = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
        try:
            return (await self._stub.GetJob(request, timeout=_ASK_S, metadata=self._metadata)).job
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error

    async def live(self) -> list[job_pb2.Job]:
        return await self._jobs(results_service_pb2.ResultsServiceListJobsRequest(states=LIVE))

    async def jobs_over(self, dataset_id: str) -> list[job_pb2.Job]:
        return await self._jobs(results_service_pb2.ResultsServiceListJobsRequest(suite=dataset_id))

    async def _jobs(self, request: results_service_pb2.ResultsServiceListJobsRequest) -> list[job_pb2.Job]:
        """All pages."""
        request.page_size, request.without_counts = _PAGE, True
        found: list[job_pb2.Job] = []
        while True:
            try:
                answer = await self._stub.ListJobs(request, timeout=_ASK_S, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                raise rpc.from_rpc_error(error) from error
            found += answer.jobs
            if not answer.next_page_token:
                return found
            request.page_token = answer.next_page_token

    async def imported(self, import_id: str) -> results_service_pb2.GetImportResponse:
        request = results_service_pb2.GetImportRequest(import_id=import_id)
        try:
            return await self._internal.GetImport(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error

    async def prepare_judging(self, judging: job_pb2.Judging) -> dataset_pb2.Dataset:
        request = results_internal_service_pb2.PrepareJudgingRequest(judging=judging)
        try:
            answer = await self._internal.PrepareJudging(request, timeout=_PREPARE_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return answer.dataset

    async def prepare_experiment(self, owner: str, definition: str, check_only: bool = False) -> dataset_pb2.Dataset:
        request = results_internal_service_pb2.PrepareExperimentRequest(
            owner=owner, definition=definition, check_only=check_only
        )
        try:
            answer = await self._internal.PrepareExperiment(request, timeout=_PREPARE_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return answer.dataset

    async def evidence(self, jobs: Sequence[job_pb2.Job], sequence: int) -> decision_pb2.Decision:
        baseline, candidate, *further = jobs
        request = results_internal_service_pb2.ReadEvidenceRequest(
            baseline=baseline, candidate=candidate, further_candidates=further, results_sequence=sequence
        )
        for job in (request.baseline, request.candidate, *request.further_candidates):
            job.spec.ClearField("webhook_url")
        try:
            answer = await self._internal.ReadEvidence(request, timeout=_EVIDENCE_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return answer.decision

    async def choose_canaries(self, watching: job_pb2.Watching, owner: str) -> job_pb2.Watching:
        request = results_internal_service_pb2.ChooseCanariesRequest(watching=watching, owner=owner)
        try:
            answer = await self._internal.ChooseCanaries(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return answer.watching

    async def alarm(self, job_id: str) -> watch_pb2.Watch | None:
        request = results_internal_service_pb2.ReadAlarmRequest(job_id=job_id)
        answer = await self._of_end(self._internal.ReadAlarm(request, timeout=_ASK_S, metadata=self._metadata))
        return answer.watch if answer.HasField("watch") else None

    async def ended_decision(self, job_id: str) -> decision_pb2.Decision | None:
        request = results_internal_service_pb2.ReadEndedDecisionRequest(job_id=job_id)
        answer = await self._of_end(self._internal.ReadEndedDecision(request, timeout=_ASK_S, metadata=self._metadata))
        return answer.decision if answer.HasField("decision") else None

    async def _of_end(self, call: Awaitable[T]) -> T:
        """The answer about a job that has ended. Raises UnavailableError where it is to be asked for again."""
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            told = rpc.from_rpc_error(error)
            # An answer that comes too late is asked for again, too.
            raise (UnavailableError(told.message) if isinstance(told, DeadlineError) else told) from error

    async def digest(self, request: results_service_pb2.GetDigestRequest, owner: str) -> digest_pb2.Digest:
        asked = results_internal_service_pb2.ReadDigestRequest(digest=request, owner=owner)
        try:
            answer = await self._internal.ReadDigest(asked, timeout=_DIGEST_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error
        return answer.digest

    async def result(self, job_id: str) -> metric_pb2.JobResult:
        request = results_service_pb2.GetJobResultRequest(job_id=job_id)
        try:
            return (await self._stub.GetJobResult(request, timeout=_ASK_S, metadata=self._metadata)).result
        except grpc.aio.AioRpcError as error:
            raise rpc.from_rpc_error(error) from error


log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 5.0
_FAILURES = 5
"""How often in a row the service may fail to answer. A short failure of its memory or its disk must not cost a job; a
permanent one would hold the job for ever."""


async def until_answered(job: Job, wanted: Callable[[], bool], ask: Callable[[], Awaitable[T]]) -> T | None:
    """The answer to a question about a job; None when it is no longer wanted. Raises the service's refusal, and its
    failure if it fails each time.

    A long silence is one line of the job's log.
    """
    pause, failures = _FIRST_PAUSE_S, 0
    while wanted():
        try:
            return await ask()
        except TouchstoneError as error:
            # A plain error is one that the service did not expect.
            failures = failures + 1 if type(error) is TouchstoneError else 0
            if failures >= _FAILURES or not (failures or isinstance(error, UnavailableError | DeadlineError)):
                raise
            extra = of_job(job.id) if pause == _FIRST_PAUSE_S else None
            log.warning("job %s: waits for the results service: %s", job.id, error.message, extra=extra)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MOST_PAUSE_S)
    return None
