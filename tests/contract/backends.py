"""What stands behind the gateway of the contract suite: the fakes of `tests/gateway`, or a whole installation."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import grpc
import httpx

from services.gateway.access.auth import LocalAccess
from services.gateway.settings import Settings
from tests.gateway import conformance, fake_world
from tests.gateway.gateway_server import Running, running
from tests.stack import API, Stack
from touchstone.v1 import job_pb2, scheduler_service_pb2_grpc

TIMEOUT_S = 60


class Backend(ABC):
    """A gateway with its services, and what the tests need done behind it."""

    def __init__(self, url: str, scheduler: str) -> None:
        """`scheduler` is the address of its gRPC API."""
        self._channel = grpc.insecure_channel(scheduler)
        self.scheduler = scheduler_service_pb2_grpc.SchedulerServiceStub(self._channel)
        self.client = httpx.Client(
            base_url=url, trust_env=False, timeout=TIMEOUT_S, event_hooks={"response": [_conforms]}
        )

    def close(self) -> None:
        self.client.close()
        self._channel.close()

    @abstractmethod
    def finish(self, job_id: str) -> None:
        """Returns when the job has ended and lists know it."""

    @abstractmethod
    def begin(self, job_id: str) -> None:
        """Returns when the job runs. It runs on until it is cancelled."""

    def file(self, path: str) -> httpx.Response:
        """A file below the API's base."""
        answer = self.client.get(API + path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer

    @contextmanager
    def events(self, job_id: str) -> Iterator[Iterator[tuple[str, str, dict[str, Any]]]]:
        """The job's event stream while the block lasts: name, id and data of each event, until the stream ends."""
        address = f"{API}/results/{job_id}/events"
        # Not by the other client, which reads answers to their end before it gives them.
        with (
            httpx.Client(base_url=self.client.base_url, trust_env=False, timeout=TIMEOUT_S) as client,
            client.stream("GET", address) as stream,
        ):
            kind = stream.headers["content-type"].partition(";")[0]
            conformance.check("GET", address, stream.status_code, kind, stream)
            yield _events(stream)

    def call(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        """The JSON of an answer with this status. Paths are below the API's base, or begin with /admin or /api."""
        address = path if path.startswith(("/admin/", "/api/")) else API + path
        answer = self.client.request(method, address, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()


class Fakes(Backend):
    """The gateway over the fake services, in a thread with an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gateway: Running, world: fake_world.World) -> None:
        super().__init__(gateway.url, gateway.settings.scheduler)
        self._loop, self._world = loop, world

    def finish(self, job_id: str) -> None:
        self._do(self._finish, job_id)

    def begin(self, job_id: str) -> None:
        self._do(self._world.start, job_id)

    def _finish(self, job_id: str) -> None:
        state = self._world.jobs[job_id].state
        if state == job_pb2.Job.STATE_PENDING:
            self._world.start(job_id)
        if state in fake_world.LIVE:
            self._world.finish(job_id)

    def _do(self, act: Any, *arguments: Any) -> None:
        async def there() -> None:
            act(*arguments)

        asyncio.run_coroutine_threadsafe(there(), self._loop).result(TIMEOUT_S)


class Installation(Backend):
    """Every process of `tests.stack`."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack.url, f"127.0.0.1:{stack.scheduler_port}")
        self._stack = stack

    def finish(self, job_id: str) -> None:
        self._stack.heard(self._stack.wait(job_id))

    def begin(self, job_id: str) -> None:
        self._stack.wait(job_id, states={job_pb2.Job.STATE_RUNNING})


@contextmanager
def fakes() -> Iterator[Fakes]:
    """Serves until the block ends."""
    loop, world = asyncio.new_event_loop(), fake_world.World()
    thread = threading.Thread(target=loop.run_forever, name="fakes", daemon=True)
    thread.start()
    stack = AsyncExitStack()
    entered = running(world, access=LocalAccess(), settings=Settings(requests_per_minute=1_000_000))
    gateway = asyncio.run_coroutine_threadsafe(stack.enter_async_context(entered), loop).result(TIMEOUT_S)
    backend = Fakes(loop, gateway, world)
    try:
        yield backend
    finally:
        backend.close()
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(TIMEOUT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT_S)
        loop.close()


def _events(stream: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    fields: list[tuple[str, str]] = []
    deadline = time.monotonic() + TIMEOUT_S
    for line in stream.iter_lines():
        assert time.monotonic() < deadline, "the stream does not end"
        name, _, value = line.partition(": ")
        if line and name:
            fields.append((name, value))
        elif fields:
            assert [name for name, _ in fields] == ["event", "id", "data"]
            (_, event), (_, identity), (_, data) = fields
            fields = []
            conformance.check_event(data)
            yield event, identity, json.loads(data)
    assert not fields, "the stream ended within an event"


def _conforms(response: httpx.Response) -> None:
    response.read()
    kind = response.headers.get("content-type", "").partition(";")[0]
    conformance.check(response.request.method, response.request.url.path, response.status_code, kind, response)
