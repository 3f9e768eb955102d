"""A connection to a Touchstone installation."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from touchstone.v1 import (
    item_result_pb2,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
)
from touchstone_client.errors import RefusedError, UnreachableError, translated
from touchstone_client.settings import Settings
from touchstone_client.specs import rerun_spec, rescore_spec

T = TypeVar("T")

_ASK_S = 10.0
_AWAY_S = 30.0
"""How long a watch outlasts a scheduler that is being restarted."""
_FINISHED = (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


class Client:
    """Jobs of one installation. Calls raise RefusedError or UnreachableError; each ends within ten seconds."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings.from_env()
        self._channels = {
            "TOUCHSTONE_SCHEDULER": grpc.insecure_channel(self._settings.scheduler),
            "TOUCHSTONE_RESULTS": grpc.insecure_channel(self._settings.results),
        }
        self._scheduler = scheduler_service_pb2_grpc.SchedulerServiceStub(self._channels["TOUCHSTONE_SCHEDULER"])
        self._results = results_service_pb2_grpc.ResultsServiceStub(self._channels["TOUCHSTONE_RESULTS"])
        token = self._settings.token
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    # -- jobs ----------------------------------------------------------------------------------------------------

    def run(self, spec: job_pb2.JobSpec, request_id: str = "") -> job_pb2.Job:
        """Queues a job. The same request id again gives the job it made; without one, each call makes a job."""
        request = scheduler_service_pb2.CreateJobRequest(request_id=request_id or uuid.uuid4().hex, spec=spec)
        return self._ask(self._scheduler.CreateJob, request).job

    def job(self, job_id: str) -> job_pb2.Job:
        """A job of any age: the scheduler knows live ones and those of the last day, results the older ones."""
        try:
            return self._ask(self._scheduler.GetJob, scheduler_service_pb2.GetJobRequest(job_id=job_id)).job
        except RefusedError as error:
            if error.code != grpc.StatusCode.NOT_FOUND:
                raise
        return self._ask(self._results.GetJob, results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)).job

    def rescore(self, job_id: str) -> job_pb2.Job:
        """A new job that scores this one's stored answers with the present scorer, without a call to the model."""
        return self.run(rescore_spec(self.job(job_id)))

    def rerun(
        self,
        job_id: str,
        outcomes: Iterable[item_result_pb2.Outcome],
        max_tokens: int | None = None,
        context_length: int | None = None,
    ) -> job_pb2.Job:
        """A new job that asks again for this one's items that ended so, and takes its other answers."""
        return self.run(rerun_spec(self.job(job_id), outcomes, max_tokens, context_length))

    def result(self, job_id: str) -> metric_pb2.JobResult:
        """What the job has measured so far."""
        return self._ask(self._results.GetJobResult, results_service_pb2.GetJobResultRequest(job_id=job_id)).result

    def watch(self, job_id: str) -> Iterator[job_pb2.Job]:
        """The job now and after each change, until it is finished. A scheduler's restart is waited for."""
        silent_since: float | None = None
        while True:
            try:
                request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
                for response in self._scheduler.WatchJob(request, metadata=self._metadata):
                    silent_since = None
                    yield response.job
                    if response.job.state in _FINISHED:
                        return
            except grpc.RpcError as error:
                failure = self._translated(error, "TOUCHSTONE_SCHEDULER")
                silent_since = silent_since or time.monotonic()
                if not isinstance(failure, UnreachableError) or time.monotonic() - silent_since > _AWAY_S:
                    raise failure from error
            time.sleep(0.5)

    # -- calls ---------------------------------------------------------------------------------------------------

    def _ask(self, method: Callable[..., T], request: Any) -> T:
        try:
            return method(request, timeout=_ASK_S, metadata=self._metadata)
        except grpc.RpcError as error:
            results = request.DESCRIPTOR.file.name.endswith("results_service.proto")
            raise self._translated(error, "TOUCHSTONE_RESULTS" if results else "TOUCHSTONE_SCHEDULER") from error

    def _translated(self, error: grpc.RpcError, variable: str) -> RefusedError | UnreachableError:
        address = self._settings.results if variable == "TOUCHSTONE_RESULTS" else self._settings.scheduler
        failure = translated(error, address, variable)
        assert isinstance(failure, RefusedError | UnreachableError)
        return failure
