"""The whole system under test: data, a model server outside the stack, the launched processes, and a client."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx

from services import bus, rpc
from tests.chaos import mirror
from tests.chaos.launched import Launched
from tests.rows import write_mirror
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour, Record, by_mapping
from tests.stack import API, FINISHED, Endpoint, endpoints_file
from touchstone.v1 import (
    job_pb2,
    results_service_pb2,
    results_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
)

CONCURRENCY = 4
"""Calls at once of each evaluator: slow enough that a job of 2,000 items lasts while it is being shot at."""
LATENCY_S = 0.015
MODELS = tuple(f"stub-{number}" for number in range(12))
"""A job takes a model of its own, which tells its calls from those of other jobs."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the scheduler said of a job at a moment of the driver's monotonic clock."""

    at: float
    state: int
    items_done: int
    units_released: int


class World:
    """Built by `open_world`."""

    def __init__(self, launched: Launched, model: OpenAIServer, questions: Sequence[mirror.Question]) -> None:
        self.launched, self.model, self.questions = launched, model, questions
        self._http = httpx.AsyncClient(base_url=launched.page_url + API, trust_env=False, timeout=10)
        self._scheduler_channel = rpc.channel(launched.scheduler)
        self._results_channel = rpc.channel(launched.results)
        self.scheduler = scheduler_service_pb2_grpc.SchedulerServiceStub(self._scheduler_channel)
        self.results = results_service_pb2_grpc.ResultsServiceStub(self._results_channel)

    async def close(self) -> None:
        await self._http.aclose()
        await self._scheduler_channel.close()
        await self._results_channel.close()

    async def submit(
        self,
        model: str,
        tasks: Sequence[str] = tuple(mirror.TASKS),
        limit: int = 0,
        params: Mapping[str, float] | None = None,
        **further: Any,
    ) -> str:
        """Starts a job through REST as a client would that repeats what was not answered; returns its id."""
        config = {"provider": "stub", "model": model, "params": params or {}}
        body = {"project_id": 1, "suite": "glue", "tasks": list(tasks), "config": config, **further}
        if limit:
            body["limit"] = limit
        return await self.start("/run", body)

    async def start(self, path: str, body: Mapping[str, Any]) -> str:
        """Starts a job by any of the paths that do, once however often the request is sent; returns its id."""
        made = await self._rest("POST", path, json={**body, "request_id": str(uuid.uuid4())})
        return str(made["job_id"])

    async def result(self, job_id: str) -> dict[str, Any]:
        """The job as REST tells it."""
        return dict(await self._rest("GET", f"/results/{job_id}"))

    async def _rest(self, method: str, path: str, **request: Any) -> Any:
        deadline = time.monotonic() + 120
        while True:
            try:
                answer = await self._http.request(method, path, **request)
                if answer.is_success:
                    return answer.json()
                problem = f"{answer.status_code}: {answer.text}"
                assert answer.status_code in (429, 502, 503, 504), problem
            except httpx.HTTPError as error:
                problem = repr(error)
            assert time.monotonic() < deadline, f"{method} {path}: {problem}"
            await asyncio.sleep(0.2)

    async def job(self, job_id: str) -> job_pb2.Job | None:
        """The job as the scheduler has it, or None while nobody answers."""
        request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
        try:
            return (await self.scheduler.GetJob(request, timeout=1)).job
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                return None
            raise

    async def finished(self, job_id: str, timeout_s: float) -> job_pb2.Job:
        """The job once it has ended by itself."""
        deadline = time.monotonic() + timeout_s
        while True:
            job = await self.job(job_id)
            if job is not None and job.state in FINISHED:
                return job
            assert time.monotonic() < deadline, f"not finished after {timeout_s:g} s: {job and job.progress}"
            await asyncio.sleep(0.05)

    async def items(self, job_id: str) -> list[results_service_pb2.StoredItem]:
        found: list[results_service_pb2.StoredItem] = []
        request = results_service_pb2.ListItemsRequest(job_id=job_id, page_size=500)
        while True:
            answer = await self.results.ListItems(request, timeout=30)
            found += answer.items
            request.page_token = answer.next_page_token
            if not request.page_token:
                return found

    async def events(self, job_id: str) -> list[job_pb2.JobEvent]:
        """The audit trail, once it has come to the job's end: it follows the job by a moment."""
        request = results_service_pb2.ListEventsRequest(job_id=job_id, page_size=1000)
        deadline = time.monotonic() + 60
        while True:
            events = list((await self.results.ListEvents(request, timeout=30)).events)
            if (events and events[-1].job.state in FINISHED) or time.monotonic() > deadline:
                return events
            await asyncio.sleep(0.1)

    async def jobs(self) -> list[job_pb2.Job]:
        """Every job that the scheduler has."""
        found: list[job_pb2.Job] = []
        request = scheduler_service_pb2.ListJobsRequest(page_size=500)
        while True:
            answer = await self.scheduler.ListJobs(request, timeout=30)
            found += answer.jobs
            request.page_token = answer.next_page_token
            if not request.page_token:
                return found

    async def messages(self, stream: str) -> int:
        """How many messages a stream holds."""
        connection = await bus.connect(self.launched.nats_url, "chaos")
        try:
            return int((await connection.js.stream_info(stream)).state.messages)
        finally:
            await connection.close()

    def calls(self, model: str) -> dict[str, list[float]]:
        """When each prompt was sent to this model, oldest first."""
        sent: dict[str, list[float]] = {}
        for record in self.model.records:
            if record.body["model"] == model:
                sent.setdefault(prompt_of(record), []).append(record.at)
        return sent


def prompt_of(record: Record) -> str:
    return "\n\n".join(message["content"] for message in record.body["messages"])


@asynccontextmanager
async def open_world(
    folder: Path,
    patch: str = "",
    *,
    server: Callable[[Behaviour], OpenAIServer] = OpenAIServer,
    endpoint: Endpoint | None = None,
    **extra: str,
) -> AsyncIterator[World]:
    """A started world. `patch` names a folder of `patches` that every Python process imports at its start; `endpoint`
    holds further keys of the endpoint's table, `extra` environment variables."""
    data_dir = folder / "data"
    write_mirror(data_dir, mirror.TASKS)
    questions = mirror.questions(data_dir)
    answers = by_mapping({question.prompt: question.answer for question in questions})
    model = server(Behaviour(answers, latency_s=LATENCY_S, models=MODELS))
    await model.start()
    stub: Endpoint = {"name": "stub", "kind": "openai", "base_url": model.url, "concurrency": CONCURRENCY}
    endpoints = endpoints_file(folder / "endpoints.toml", [{**stub, **(endpoint or {})}])
    if patch:
        extra["PYTHONPATH"] = str(Path(__file__).parent / "patches" / patch)
    launched = Launched(folder, data_dir, endpoints, extra)
    world = World(launched, model, questions)
    try:
        await launched.start()
        await launched.until_ready()
        yield world
    finally:
        await launched.stop()
        await world.close()
        await model.stop()
