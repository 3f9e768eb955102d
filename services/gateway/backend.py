"""The two services behind the gateway: one way to call them, with identity, a deadline and domain errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services import rpc
from services.errors import NoRoomError, TouchstoneError, UnavailableError
from touchstone.v1 import job_pb2, scheduler_service_pb2
from touchstone.v1.dataset_service_pb2_grpc import DatasetServiceStub
from touchstone.v1.results_service_pb2_grpc import ResultsServiceStub
from touchstone.v1.scheduler_service_pb2_grpc import SchedulerServiceStub

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

_NOTICE_TIMEOUT_S, _NOTICE_RETRY_S = 1.0, 30
_NO_ANSWER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class RpcFailureError(TouchstoneError):
    """A call failed with a code that no domain error stands for."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Backend:
    """Stubs of both services. Every call states who asks and ends by its deadline."""

    def __init__(
        self, scheduler: grpc.aio.Channel, results: grpc.aio.Channel, service_token: str, timeout_s: float
    ) -> None:
        self._channels = {"scheduler": scheduler, "results": results}
        self.scheduler = SchedulerServiceStub(scheduler)
        self.results = ResultsServiceStub(results)
        self.datasets = DatasetServiceStub(results)
        self._service_token = service_token
        self._timeout_s = timeout_s

    async def ask(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, R],
        request: Q,
        caller: rpc.Identity,
        *,
        timeout_s: float | None = None,
    ) -> R:
        """One unary call. Raises the domain error; UnavailableError when no answer comes in time."""
        metadata = rpc.metadata(self._service_token, caller)
        try:
            return await method(request, timeout=timeout_s or self._timeout_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise await self._reason(error, _service_of(request)) from error

    async def send(
        self,
        method: grpc.aio.StreamUnaryMultiCallable[Q, R],
        requests: AsyncIterator[Q],
        caller: rpc.Identity,
        timeout_s: float,
    ) -> R:
        """One call of the results service with streamed requests, at its pace. Raises like `ask`, and what `requests`
        raises."""
        metadata = rpc.metadata(self._service_token, caller)
        call = method(timeout=timeout_s, metadata=metadata, wait_for_ready=False)
        try:
            return await rpc.send(call, requests)
        except grpc.aio.AioRpcError as error:
            raise await self._reason(error, "results") from error

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Q, R], request: Q, caller: rpc.Identity
    ) -> AsyncGenerator[R]:
        """The answers of one streaming call, without a deadline: the reader sets the pace. Raises like `ask`."""
        call = method(request, metadata=rpc.metadata(self._service_token, caller), wait_for_ready=False)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise await self._reason(error, _service_of(request)) from error
        finally:
            call.cancel()

    async def watch(self, job_id: str, caller: rpc.Identity) -> AsyncGenerator[job_pb2.Job]:
        """The job now and at each change, until it is finished. Raises like `ask`."""
        request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
        async with aclosing(self.stream(self.scheduler.WatchJob, request, caller)) as updates:
            async for response in updates:
                yield response.job

    async def _reason(self, error: grpc.aio.AioRpcError, service: str) -> TouchstoneError:
        """The domain error. Without disk space the results service may be away: then the scheduler says so."""
        found = _translated(error, service)
        if service == "results" and found.message == _SILENCE[service]:
            request = scheduler_service_pb2.GetQueueRequest()
            metadata = rpc.metadata(self._service_token, rpc.Identity("gateway", rpc.LOCAL.role))
            try:
                answer = await self.scheduler.GetQueue(request, timeout=_NOTICE_TIMEOUT_S, metadata=metadata)
            except grpc.aio.AioRpcError as other:
                said = rpc.from_rpc_error(other)
                return said if isinstance(said, NoRoomError) else found
            if answer.queue.notice:
                return NoRoomError(answer.queue.notice, _NOTICE_RETRY_S)
        return found

    async def health(self) -> dict[str, bool]:
        """Whether each service says that it is serving."""
        return {name: await self._serving(channel) for name, channel in self._channels.items()}

    async def _serving(self, channel: grpc.aio.Channel) -> bool:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1.5)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()


def _service_of(request: Message) -> str:
    return "scheduler" if "scheduler" in request.DESCRIPTOR.file.name else "results"


def _translated(error: grpc.aio.AioRpcError, service: str) -> TouchstoneError:
    if error.code() in _NO_ANSWER and not _answered(error):
        # Channels wait until a server is there, so a stopped service shows as a passed deadline.
        return UnavailableError(_SILENCE[service])
    domain = rpc.from_rpc_error(error)
    if type(domain) is TouchstoneError:
        return RpcFailureError(error.code(), domain.message)
    return domain


def _answered(error: grpc.aio.AioRpcError) -> bool:
    """Whether the service itself says so, of something that it needs: its own errors come with details."""
    return any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata() or ())


_SILENCE = {
    "scheduler": "The scheduler does not answer. Jobs that run go on; try again in a moment.",
    "results": "The results service does not answer. Nothing is lost; try again in a moment.",
}
