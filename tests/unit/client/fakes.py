"""The public services in this process, answering as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.message import Message

from services.errors import TouchstoneError
from services.rpc import to_status
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    item_result_pb2,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)
from touchstone_client.settings import Settings

Answer = Message | TouchstoneError | Callable[[Any], Any] | Sequence[Any]
SERVICES = (
    scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"],
    results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"],
    dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"],
)
JOB = "11111111-1111-1111-1111-111111111111"
OTHER = "22222222-2222-2222-2222-222222222222"
DATASET = "ds_0f3b6c2a9d8e4f71b5a0c4d2e6f81357"


@dataclass
class Fakes:
    """`answers` by method, as "Results.GetJob" or just "GetQueue": a message, an error, a function of the request, or
    for streams a sequence of messages and errors. `heard` has what was asked."""

    address: str
    answers: dict[str, Answer] = field(default_factory=dict)
    heard: list[tuple[str, Any]] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return Settings(scheduler=self.address, results=self.address, timeout_s=5)

    def requests(self, method: str) -> list[Any]:
        return [request for name, request in self.heard if name.endswith(method)]

    def specs(self) -> list[job_pb2.JobSpec]:
        """Of the jobs that were asked for together."""
        return [spec for request in self.requests("CreateJobs") for spec in request.specs]

    def answer(self, name: str, request: Any, context: Any) -> Any:
        self.heard.append((name, request))
        self.metadata.append(dict(context.invocation_metadata()))
        found = self.answers.get(name, self.answers.get(name.partition(".")[2]))
        if found is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"No answer for {name}.")
        return self._told(found(request) if callable(found) else found, context)

    def _told(self, found: Any, context: Any) -> Any:
        if isinstance(found, TouchstoneError):
            context.abort_with_status(to_status(found))
        if isinstance(found, grpc.StatusCode):
            context.abort(found, "said by the fake")
        return found


@contextmanager
def serving(credentials: grpc.ServerCredentials | None = None, host: str = "127.0.0.1") -> Iterator[Fakes]:
    """All services on one port of loopback."""
    server = grpc.server(ThreadPoolExecutor(4))
    fakes = Fakes("")
    for service in SERVICES:
        handlers = {method.name: _handler(fakes, service.name, method) for method in service.methods}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    address = f"{host}:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    fakes.address = f"{host}:{port}"
    server.start()
    try:
        yield fakes
    finally:
        server.stop(None).wait()


def _handler(fakes: Fakes, service: str, method: Any) -> Any:
    name = f"{service.removesuffix('Service')}.{method.name}"
    request, response = (message_factory.GetMessageClass(kind) for kind in (method.input_type, method.output_type))

    def unary(asked: Any, context: Any) -> Any:
        return fakes.answer(name, asked, context)

    def sent(asked: Iterator[Any], context: Any) -> Any:
        return fakes.answer(name, list(asked), context)

    def stream(asked: Any, context: Any) -> Iterator[Any]:
        for part in fakes.answer(name, asked, context):
            yield fakes._told(part, context)

    if method.client_streaming:
        return grpc.stream_unary_rpc_method_handler(sent, request.FromString, response.SerializeToString)
    made = grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
    return made(stream if method.server_streaming else unary, request.FromString, response.SerializeToString)


def job(job_id: str = JOB, state: str = "COMPLETED", model: str = "m", **fields: Any) -> job_pb2.Job:
    made = job_pb2.Job(job_id=job_id, state=f"STATE_{state}", owner="alice", **fields)
    made.spec.endpoint, made.spec.model, made.spec.suite.suite = "e", model, "glue"
    made.receipt.configuration = f"hash-of-{model}"
    made.progress.current_step = state.capitalize()
    return made


def dataset(**fields: Any) -> dataset_pb2.Dataset:
    made = dataset_pb2.Dataset(
        dataset_id=DATASET, name="capitals.jsonl", owner="alice", format="FORMAT_LINES", rows=5000, bytes=12_300_000,
        rows_with_reference=4000, input_tokens=120_000, scoring=scoring_pb2.Scoring(scorer="exact_match"),
    )  # fmt: skip
    made.MergeFrom(dataset_pb2.Dataset(**fields))
    return made


def dataset_job(job_id: str = JOB, model: str = "m", state: str = "COMPLETED", **fields: Any) -> job_pb2.Job:
    """A job over the dataset."""
    made = job(job_id, state, model, **fields)
    work = job_pb2.DatasetWork(dataset_id=DATASET, name="capitals.jsonl", digest="d" * 64)
    work.scoring.scorer, work.scoring.reference_field = "exact_match", "label"
    made.spec.dataset.CopyFrom(work)
    made.plan.add(task="rows", items=5000, published_items=5000, repeats=1)
    return made


def metric(name: str = "accuracy", mean: float = 0.8, stderr: float = 0.01, n: int = 1000) -> metric_pb2.Metric:
    return metric_pb2.Metric(
        metric=name, mean=mean, stderr=stderr, ci95_low=mean - 2 * stderr, ci95_high=mean + 2 * stderr, n=n
    )


def result(job_id: str = JOB, **fields: Any) -> metric_pb2.JobResult:
    tasks = [
        metric_pb2.TaskResult(task="sst2", title="SST-2", metrics=[metric()], items=1000),
        metric_pb2.TaskResult(task="rte", title="RTE", metrics=[metric(mean=0.6, stderr=0.02)], items=1000),
    ]
    return metric_pb2.JobResult(job_id=job_id, tasks=tasks, suite_score=metric("score", 0.7), sealed=True, **fields)


def page_of_items(request: Any) -> results_service_pb2.ListItemsResponse:
    first = int(request.page_token or 0)
    items = [
        results_service_pb2.StoredItem(task="sst2", result=item_result_pb2.ItemResult(item=item))
        for item in range(first, first + 2)
    ]
    return results_service_pb2.ListItemsResponse(items=items, next_page_token=str(first + 2) if first < 4 else "")


def states(*names: str) -> list[scheduler_service_pb2.WatchJobResponse]:
    return [scheduler_service_pb2.WatchJobResponse(job=job(state=name)) for name in names]


def watched(fakes: Fakes) -> None:
    """A stream that breaks, one that ends too early, one that goes to the end."""
    streams: Iterator[Any] = iter(
        [[*states("PENDING"), grpc.StatusCode.UNAVAILABLE], states("RUNNING"), states("RUNNING", "COMPLETED", "FAILED")]
    )
    fakes.answers["WatchJob"] = lambda request: next(streams)
