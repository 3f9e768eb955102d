"""The two services behind the gateway: one way to call them, with identity, a deadline and domain errors.

A silent service is noticed soon; a slow one may take its time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services import rpc
from services.bus.room import Room
from services.errors import AwayError, NoRoomError, NotFoundError, TouchstoneError, UnavailableError
from services.gateway import tracing
from services.gateway.replica import Replica, age
from touchstone.v1 import dataset_service_pb2, job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone.v1.dataset_service_pb2_grpc import DatasetServiceStub
from touchstone.v1.results_service_pb2_grpc import ResultsServiceStub
from touchstone.v1.scheduler_service_pb2_grpc import SchedulerServiceStub

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

_CONNECT_S = 0.3
SCHEDULER, RESULTS = "touchstone.v1.SchedulerService", "touchstone.v1.ResultsService"


class SilentError(Exception):
    """Nothing was heard of the service."""


class Line:
    """The channel to one service. It is silent when no call gets an answer for `silence_s`, and neither does a
    question for its health."""

    def __init__(self, channel: grpc.aio.Channel, service: str, silence_s: float) -> None:
        """`service` is the full name of the service whose health is asked."""
        self.channel = channel
        self._service = service
        self._silence_s = silence_s
        self._heard = -silence_s
        self._looking: asyncio.Task[bool] | None = None

    async def answer(self, call: grpc.aio.UnaryUnaryCall[Q, R], *, hurry: bool = False) -> R:
        """The call's answer. Raises AioRpcError, and SilentError, which ends the call. With `hurry` a service without a
        connection is silent at once."""
        waiting = asyncio.ensure_future(_awaited(call))
        try:
            if hurry and not (await asyncio.wait((waiting,), timeout=_CONNECT_S))[0] and not self._connected:
                raise SilentError
            while not (await asyncio.wait((waiting,), timeout=self._silence_s))[0]:
                if not await self._can_be_heard() and not waiting.done():
                    raise SilentError
            response = await waiting
        except grpc.aio.AioRpcError as error:
            if answered(error):
                self._heard = time.monotonic()
            raise
        finally:
            waiting.cancel()
        self._heard = time.monotonic()
        return response

    async def serving(self, timeout_s: float) -> bool:
        """Whether the service says so, at one of its addresses."""
        one = self.channel
        parts = one.parts if isinstance(one, rpc.Balanced) else [one]
        return any(await asyncio.gather(*(self._serving(part, timeout_s) for part in parts)))

    async def _serving(self, channel: grpc.aio.Channel, timeout_s: float) -> bool:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=self._service), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return False
        self._heard = time.monotonic()
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    @property
    def _connected(self) -> bool:
        return bool(self.channel.get_state() == grpc.ChannelConnectivity.READY)

    async def _can_be_heard(self) -> bool:
        if time.monotonic() - self._heard < self._silence_s:
            return True
        if not self._connected:
            return False
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.serving(self._silence_s))
        await asyncio.shield(self._looking)
        return time.monotonic() - self._heard < self._silence_s


def answered(error: grpc.aio.AioRpcError) -> bool:
    """Whether the service itself sent the error, possibly about something that it needs: its own errors have
    details."""
    return any(key == "grpc-status-details-bin" for key, _ in error.trailing_metadata() or ())


async def _awaited(call: grpc.aio.UnaryUnaryCall[Q, R]) -> R:
    try:
        return await call
    finally:
        call.cancel()


ANSWER_S = 30.0
"""Most seconds for an answer of a service that is alive."""
EXPERIMENT_S = 120.0
"""The same for the start of an experiment: the largest definitions take seconds to check, and their rows some more to
store."""
_HEALTH_S = 1.5
_NOTICE_TIMEOUT_S, _NOTICE_RETRY_S = 1.0, 30


class RpcFailureError(TouchstoneError):
    """A call failed with a code without a domain error."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Backend:
    """Stubs of both services. Every call names the caller and ends by its deadline."""

    def __init__(
        self,
        scheduler: grpc.aio.Channel,
        results: grpc.aio.Channel,
        service_token: str,
        timeout_s: float,
        room: Room,
        replica: grpc.aio.Channel | None = None,
    ) -> None:
        """`room` is about the disk on which the services write, as far as it is known here. `replica` leads to the copy
        of the results, if there is one."""
        self._lines = {
            "scheduler": Line(scheduler, SCHEDULER, timeout_s),
            "results": Line(results, RESULTS, timeout_s),
        }
        self.scheduler = SchedulerServiceStub(scheduler)
        self.results = ResultsServiceStub(results)
        self.datasets = DatasetServiceStub(results)
        self._service_token = service_token
        self._copy_line = Line(replica, RESULTS, timeout_s) if replica is not None else None
        self._replica = self._copy_of(replica) if replica is not None else None
        self.room = room
        self.stored: dict[str, tuple[int, bool]] = {}
        """Jobs that were lately found in the results service: attempt, and whether it had ended."""

    def _copy_of(self, channel: grpc.aio.Channel) -> Replica:
        results, datasets = results_service_pb2.DESCRIPTOR, dataset_service_pb2.DESCRIPTOR
        stubs: list[tuple[Any, Any, Any]] = [
            (results.services_by_name["ResultsService"], self.results, ResultsServiceStub(channel)),
            (datasets.services_by_name["DatasetService"], self.datasets, DatasetServiceStub(channel)),
        ]
        return Replica(stubs, lambda: self._lines["results"].serving(_HEALTH_S))

    async def ask(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Q, R],
        request: Q,
        caller: rpc.Identity,
        *,
        timeout_s: float | None = None,
        fresh: bool = False,
    ) -> R:
        """One unary call. Raises the domain error; AwayError when the service is silent, NoRoomError if the reason is a
        lack of room, and UnavailableError when a live service takes longer than `timeout_s`, usually ANSWER_S.

        While the results service is away, the copy answers requests that only read, unless the answer must be `fresh`.
        """
        metadata = rpc.metadata(self._service_token, caller)
        service = _service_of(request)
        replica = self._replica if service == "results" and age() is not None else None
        found: TouchstoneError = AwayError(_SILENCE[service])
        if replica is None or not replica.away:
            hurry = replica is not None or self.room.is_full()
            try:
                call = method(request, timeout=timeout_s or ANSWER_S, metadata=metadata)
                answer = await self._lines[service].answer(call, hurry=hurry)
            except SilentError:
                pass
            except grpc.aio.AioRpcError as error:
                found = _translated(error, service)
            else:
                tracing.note(answer)
                return answer
        if replica is not None and isinstance(found, AwayError):
            replica.gone()
            if not fresh:
                try:
                    copied: R = await replica.answer(method, request, metadata, timeout_s or ANSWER_S)
                    return copied
                except grpc.aio.AioRpcError as error:
                    found = _of_copy(error, found)
        raise await self._reason(found, service)

    async def send(
        self,
        method: grpc.aio.StreamUnaryMultiCallable[Q, R],
        requests: AsyncIterator[Q],
        caller: rpc.Identity,
        timeout_s: float,
    ) -> R:
        """One call of the results service with streamed requests, at its pace. Raises like `ask`, and the errors of
        `requests`."""
        metadata = rpc.metadata(self._service_token, caller)
        if isinstance(channel := self._lines["results"].channel, rpc.Balanced):
            await channel.find()
        call = method(timeout=timeout_s, metadata=metadata, wait_for_ready=False)
        try:
            return await rpc.send(call, requests)
        except grpc.aio.AioRpcError as error:
            raise await self._reason(_translated(error, "results"), "results") from error

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Q, R], request: Q, caller: rpc.Identity
    ) -> AsyncGenerator[R]:
        """The answers of one streaming call, without a deadline: the reader sets the pace. Raises like `ask`. The copy
        answers what the results service has not begun to answer."""
        metadata, service = rpc.metadata(self._service_token, caller), _service_of(request)
        replica = self._replica if service == "results" and age() is not None else None
        found: TouchstoneError = AwayError(_SILENCE[service])
        if replica is None or not replica.away:
            call, begun = method(request, metadata=metadata, wait_for_ready=False), False
            try:
                async for response in call:
                    begun = True
                    yield response
                return
            except grpc.aio.AioRpcError as error:
                found = _translated(error, service)
                if begun:
                    raise await self._reason(found, service) from error
            finally:
                call.cancel()
        if replica is not None and isinstance(found, AwayError):
            replica.gone()
            try:
                async with aclosing(replica.stream(method, request, metadata)) as copied:
                    async for response in copied:
                        yield response
                return
            except grpc.aio.AioRpcError as error:
                found = _of_copy(error, found)
        raise await self._reason(found, service)

    async def watch(self, job_id: str, caller: rpc.Identity) -> AsyncGenerator[job_pb2.Job]:
        """The job now and at each change, until it is finished. Raises like `ask`."""
        request = scheduler_service_pb2.WatchJobRequest(job_id=job_id)
        async with aclosing(self.stream(self.scheduler.WatchJob, request, caller)) as updates:
            async for response in updates:
                yield response.job

    async def _reason(self, found: TouchstoneError, service: str) -> TouchstoneError:
        """The error for users. Without disk space the results service may be away: then the scheduler says so, and if
        that is away as well, the disk itself is checked."""
        if not isinstance(found, AwayError):
            return found
        if service == "results":
            request = scheduler_service_pb2.GetQueueRequest()
            metadata = rpc.metadata(self._service_token, rpc.Identity("gateway", rpc.LOCAL.role))
            try:
                call = self.scheduler.GetQueue(request, timeout=_NOTICE_TIMEOUT_S, metadata=metadata)
                answer = await self._lines["scheduler"].answer(call, hurry=self.room.is_full())
            except SilentError:
                return self.room.reason(found)
            except grpc.aio.AioRpcError as other:
                said = rpc.from_rpc_error(other)
                return said if isinstance(said, NoRoomError) else self.room.reason(found)
            if answer.queue.notice:
                return NoRoomError(answer.queue.notice, _NOTICE_RETRY_S)
        return self.room.reason(found)

    async def health(self) -> dict[str, bool]:
        """Whether each service says that it is serving."""
        serving = await asyncio.gather(*(line.serving(_HEALTH_S) for line in self._lines.values()))
        found = dict(zip(self._lines, serving, strict=True))
        if self._replica is not None and found["results"]:
            self._replica.away = False
        return found

    async def copy_serves(self) -> bool:
        """Whether there is a copy of the results that answers."""
        return self._copy_line is not None and await self._copy_line.serving(_HEALTH_S)

    async def close(self) -> None:
        if self._replica is not None:
            await self._replica.close()
        for line in (*self._lines.values(), self._copy_line):
            if line is not None:
                await line.channel.close()


def _service_of(request: Message) -> str:
    return "scheduler" if "scheduler" in request.DESCRIPTOR.file.name else "results"


def _translated(error: grpc.aio.AioRpcError, service: str) -> TouchstoneError:
    if not answered(error):
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            return UnavailableError(_SLOW[service])
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return AwayError(_SILENCE[service])
    domain = rpc.from_rpc_error(error)
    if type(domain) is TouchstoneError:
        return RpcFailureError(error.code(), domain.message)
    return domain


def _of_copy(error: grpc.aio.AioRpcError, silence: TouchstoneError) -> TouchstoneError:
    """What is not in the copy may be in the database."""
    found = _translated(error, "results")
    return silence if isinstance(found, NotFoundError | UnavailableError) else found


_SILENCE = {
    "scheduler": "The scheduler does not answer. Running jobs continue. Try again in a moment.",
    "results": "The results service does not answer. Nothing is lost. Try again in a moment.",
}
_SLOW = {
    "scheduler": (
        "The scheduler is busy and did not answer in time. Check whether the request was carried out, then try again."
    ),
    "results": "The results service is busy and did not answer in time. Try again in a moment.",
}
