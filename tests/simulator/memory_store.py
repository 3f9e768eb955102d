"""The results service's store in memory, for most simulations: DuckDB would take longer than all else together.

These functions do what those of the same names do with DuckDB, as far as the simulation sees it;
`test_memory_store.py` holds both to the same answers. A connection is a view of one `Stored`, which outlives crashes.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from unittest.mock import patch

import duckdb
from nats.aio.msg import Msg

from services import bus
from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.results import internal_servicer, server, servicer
from services.results.export import exports
from services.results.imports import store
from services.results.intake import kept_stream, writes
from services.results.intake.writes import Mark
from services.results.items import reads
from services.results.runs import job_reads
from services.results.scores.job_result import Computed
from services.results.storage import stored_responses
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from tests.simulator import memory_datasets
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2
from touchstone.v1 import results_service_pb2 as pb

_ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
_ENDED_EARLY = (job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)
ItemKey = tuple[str, str, int, int]
Row = dict[str, Any]
"""Of what people say, with its number."""


@dataclass
class Stored:
    """Everything that is on disk."""

    positions: dict[str, Mark] = field(default_factory=dict)
    items: dict[ItemKey, tuple[int, item_result_pb2.ItemResult]] = field(default_factory=dict)
    """With the attempt that stored it."""
    jobs: dict[str, tuple[str, job_pb2.Job]] = field(default_factory=dict)
    """With the id of the event that told it."""
    events: dict[str, job_pb2.JobEvent] = field(default_factory=dict)
    seals: dict[str, tuple[int, pb.SealJobResponse]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Jobs of which nothing is stored again."""
    marks: list[Row] = field(default_factory=list)
    annotations: list[Row] = field(default_factory=list)
    preferences: list[Row] = field(default_factory=list)
    rubrics: list[Row] = field(default_factory=list)
    ratings: list[Row] = field(default_factory=list)
    tables: memory_datasets.Tables = field(default_factory=memory_datasets.Tables)
    """Of datasets."""


class MemoryConnection:
    """In place of a DuckDB connection. Each transaction runs in one step, so that a crash never cuts one short."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored

    def cursor(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, sql: str, parameters: object = None) -> Self:
        """For the words that begin a snapshot, and for what is asked about a file: there is none."""
        return self

    @property
    def description(self) -> tuple[tuple[str], ...]:
        return ()

    def fetchall(self) -> list[tuple[Any, ...]]:
        return []

    def begin(self) -> None:
        pass

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        pass


def read_mark(connection: MemoryConnection, stream: str) -> Mark:
    return connection.stored.positions.get(stream, Mark(stream, "", 0))


def write_mark(connection: MemoryConnection, mark: Mark) -> None:
    connection.stored.positions[mark.stream] = mark


def insert_items(connection: MemoryConnection, batches: Sequence[item_result_pb2.ItemResultBatch]) -> None:
    batches = [batch for batch in batches if batch.job_id not in connection.stored.deleted]
    keys = [(b.job_id, b.task, item.item, item.repeat) for b in batches for item in b.items]
    if len(set(keys)) < len(keys) or any(key in connection.stored.items for key in keys):
        raise duckdb.ConstraintException("Constraint Error: Duplicate key")
    store_items(connection, batches)


def store_items(connection: MemoryConnection, batches: Sequence[item_result_pb2.ItemResultBatch]) -> None:
    items = connection.stored.items
    batches = [batch for batch in batches if batch.job_id not in connection.stored.deleted]
    for batch in batches:
        for item in batch.items:
            key = (batch.job_id, batch.task, item.item, item.repeat)
            known = items.get(key)
            if known is None or (known[1].outcome == _ERROR and (item.outcome != _ERROR or batch.attempt > known[0])):
                items[key] = batch.attempt, item
    for job_id in {batch.job_id for batch in batches}:
        known_job = connection.stored.jobs.get(job_id)
        if known_job is not None:
            connection.stored.jobs[job_id] = known_job[0], _counted(connection.stored, known_job[1])


def _counted(stored: Stored, job: job_pb2.Job) -> job_pb2.Job:
    if job.state not in _ENDED_EARLY or not job.plan:
        return job
    done, failed = _counts(stored, job)
    corrected = job_pb2.Job()
    corrected.CopyFrom(job)
    planned = {plan.task for plan in job.plan}
    corrected.progress.items_done = sum(n for task, n in done.items() if task in planned)
    corrected.progress.items_failed = sum(n for task, n in failed.items() if task in planned)
    for task in corrected.progress.tasks:
        task.items_done, task.items_failed = done[task.task], failed[task.task]
    return corrected


def _counts(stored: Stored, job: job_pb2.Job) -> tuple[Counter[str], Counter[str]]:
    done: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for (job_id, task, _, _), (_, item) in stored.items.items():
        if job_id == job.job_id:
            done[task] += 1
            failed[task] += item.outcome == _ERROR
    return done, failed


def store_events(connection: MemoryConnection, events: Sequence[job_pb2.JobEvent]) -> None:
    for event in events:
        connection.stored.events.setdefault(event.event_id, event)
        if event.job.HasField("deleted_at"):
            _delete_job(connection.stored, event.job.job_id)
    for event in events:
        if event.job.job_id not in connection.stored.deleted:
            _store_job(connection.stored, event.job, event.event_id)


def _delete_job(stored: Stored, job_id: str) -> None:
    stored.deleted.add(job_id)
    stored.jobs.pop(job_id, None)
    stored.seals.pop(job_id, None)
    stored.items = {key: item for key, item in stored.items.items() if key[0] != job_id}


def _store_job(stored: Stored, job: job_pb2.Job, event_id: str) -> None:
    known = stored.jobs.get(job.job_id)
    if known is None or (len(event_id), event_id) > (len(known[0]), known[0]):
        stored.jobs[job.job_id] = event_id, _counted(stored, job)


def compute(connection: MemoryConnection, job: job_pb2.Job, *, seal: bool) -> Computed:
    done, failed = _counts(connection.stored, job)
    missing = sum(max(0, plan.items * max(1, plan.repeats) - done[plan.task]) for plan in job.plan)
    result = metric_pb2.JobResult(job_id=job.job_id, sealed=seal)
    return Computed(result, (), missing, sum(failed[plan.task] for plan in job.plan))


def sealed_result(connection: MemoryConnection, job_id: str, attempt: int) -> pb.SealJobResponse | None:
    known = connection.stored.seals.get(job_id)
    return known[1] if known is not None and known[0] >= attempt else None


def store_seal(
    connection: MemoryConnection, job: job_pb2.Job, computed: Computed, sealed_at: datetime
) -> pb.SealJobResponse:
    if job.job_id in connection.stored.deleted:
        raise NotFoundError(f"Benchmark job {job.job_id} not found")
    sealed = sealed_result(connection, job.job_id, job.attempt)
    if sealed is None:
        _store_job(connection.stored, job, "")
        sealed = pb.SealJobResponse(
            missing=computed.missing, infrastructure_errors=computed.errors, result=computed.result
        )
        connection.stored.seals[job.job_id] = job.attempt, sealed
    return sealed


def get_job(connection: MemoryConnection, job_id: str, visible: Visibility = EVERYTHING) -> job_pb2.Job:
    if job_id not in connection.stored.jobs:
        raise NotFoundError(f"Benchmark job {job_id} not found")
    job = connection.stored.jobs[job_id][1]
    visible.check(job)
    return job


def list_jobs(
    connection: MemoryConnection, request: pb.ResultsServiceListJobsRequest, visible: Visibility = EVERYTHING
) -> pb.ResultsServiceListJobsResponse:
    """All on one page: a simulation has few."""
    jobs = [job for _, job in connection.stored.jobs.values() if not request.states or job.state in request.states]
    jobs.sort(key=lambda job: (job.created_at.ToMicroseconds(), job.job_id), reverse=True)
    return pb.ResultsServiceListJobsResponse(jobs=jobs, total_size=len(jobs))


def is_stored(connection: MemoryConnection, job_id: str) -> bool:
    return job_id in connection.stored.jobs


def get_job_result(connection: MemoryConnection, job_id: str, visible: Visibility = EVERYTHING) -> metric_pb2.JobResult:
    job = get_job(connection, job_id, visible)
    sealed = sealed_result(connection, job_id, job.attempt)
    return sealed.result if sealed is not None else compute(connection, job, seal=False).result


def list_stored_items(connection: MemoryConnection, job_id: str) -> pb.ListStoredItemsResponse:
    found: dict[str, list[int]] = {}
    for (owner, task, _, _), (_, item) in connection.stored.items.items():
        if owner == job_id and item.outcome != _ERROR:
            found.setdefault(task, []).append(item.position)
    return pb.ListStoredItemsResponse(
        tasks=[pb.StoredTaskItems(task=task, positions=sorted(positions)) for task, positions in sorted(found.items())]
    )


def export(
    connection: MemoryConnection, request: pb.ExportRequest, visible: Visibility = EVERYTHING, pictures: object = None
) -> Iterator[pb.ExportResponse]:
    """The keys of a job's items, one in each piece."""
    job_id = get_job(connection, request.items.job_id, visible).job_id
    for key in sorted(key for key in connection.stored.items if key[0] == job_id):
        yield pb.ExportResponse(data=json.dumps(key).encode())


def find_responses(
    connection: MemoryConnection, request: pb.FindResponsesRequest, visible: Visibility = EVERYTHING
) -> pb.FindResponsesResponse:
    if not request.job_id:
        return pb.FindResponsesResponse()
    wanted = set(request.positions)
    response = pb.FindResponsesResponse()
    for (job_id, task, _, _), (_, item) in connection.stored.items.items():
        if (job_id, task) == (request.job_id, request.task) and item.outcome != _ERROR and item.position in wanted:
            response.results.add().CopyFrom(item)
            response.results[-1].prompt = ""
    return response


def mark_run(
    connection: MemoryConnection,
    request: pb.MarkRunRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> None:
    job = get_job(connection, request.job_id, visible)
    if sealed_result(connection, job.job_id, job.attempt) is None:
        raise ConflictError(f"Job {job.job_id} is not finished. Mark it when it is.")
    _say(connection.stored.marks, {"job_id": job.job_id, "mark": int(request.mark), "reason": request.reason})


def get_item(
    connection: MemoryConnection, request: pb.GetItemRequest, visible: Visibility = EVERYTHING
) -> pb.StoredItem:
    key = (request.job_id, request.task, request.item, request.repeat)
    if key not in connection.stored.items:
        raise NotFoundError(f"Job {request.job_id} has no stored item {request.item} of task {request.task!r}.")
    item = pb.StoredItem(job_id=request.job_id, task=request.task, result=connection.stored.items[key][1])
    for row in connection.stored.annotations:
        if (row["job_id"], row["task"], row["item"], row["repeat"]) == key:
            said = pb.Annotation(verdict=row["verdict"], note=row["note"], author=row["author"])
            item.annotation.CopyFrom(said)
    return item


def annotate(
    connection: MemoryConnection,
    request: pb.AnnotateItemRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> None:
    get_job(connection, request.job_id, visible)
    key = (request.job_id, request.task, request.item, request.repeat)
    wanted = pb.GetItemRequest(job_id=key[0], task=key[1], item=key[2], repeat=key[3])
    stored = get_item(connection, wanted, visible)
    if stored.result.outcome == _ERROR:
        raise ConflictError("The calls failed.")
    if not request.verdict and not request.note:
        raise InvalidRequestError("Say something.", "verdict")
    row = dict(zip(("job_id", "task", "item", "repeat"), key, strict=True))
    said = {"verdict": int(request.verdict), "note": request.note, "author": caller.user}
    _say(connection.stored.annotations, row | said)


def _say(rows: list[Row], row: Row) -> None:
    rows.append({"number": len(rows) + 1} | row)


def numbered(connection: MemoryConnection, table: str, after: int) -> list[Row]:
    rows: list[Row] = getattr(connection.stored, table)
    return [row for row in rows if row["number"] > after]


def highest(connection: MemoryConnection, table: str) -> int:
    return max((int(row["number"]) for row in getattr(connection.stored, table)), default=0)


def store_statements(connection: MemoryConnection, messages: Sequence[Msg]) -> None:
    for msg in messages:
        table, row = bus.kept_table(msg.subject), json.loads(msg.data)
        rows: list[Row] = getattr(connection.stored, table)
        if all(known["number"] != row["number"] for known in rows):
            rows.append(row)


class _NobodyServes:
    """Has every method and answers none."""

    def __getattr__(self, name: str) -> None:
        return None


class _NoDatasets:
    """In place of datasets in worlds without: to look for what is left over takes time."""

    def __init__(self, *_: object) -> None:
        self.servicer: Any = _NobodyServes()
        self.uploads: Any = None

    async def reconcile(self) -> None:
        pass

    async def run(self) -> None:
        await asyncio.Event().wait()


async def _nothing_to_tidy(*_: object) -> None:
    await asyncio.Event().wait()


@contextmanager
def installed(stored: Stored, *, with_datasets: bool = False) -> Iterator[None]:
    """Inside, the results service keeps everything in `stored`."""
    here = globals()
    of_modules: dict[Any, tuple[str, ...]] = {
        writes: ("read_mark", "write_mark", "insert_items", "store_items", "store_events", "store_seal"),
        job_reads: ("get_job", "sealed_result", "is_stored", "get_job_result", "list_jobs"),
        reads: ("list_stored_items", "get_item"),
        stored_responses: ("find_responses",),
        exports: ("export",),
        internal_servicer: ("compute",),
        servicer: ("mark_run", "annotate"),
    }
    with ExitStack() as stack:
        for module, names in of_modules.items():
            for name in names:
                stack.enter_context(patch.object(module, name, here[name]))
        stack.enter_context(patch.object(kept_stream, "_numbered", numbered))
        stack.enter_context(patch.object(kept_stream, "_highest", highest))
        stack.enter_context(patch.object(kept_stream, "store", store_statements))
        stack.enter_context(patch.object(server, "open_file", lambda *_: MemoryConnection(stored)))
        if with_datasets:
            stack.enter_context(memory_datasets.installed())
        else:
            stack.enter_context(patch.object(server, "DatasetParts", _NoDatasets))
        stack.enter_context(patch.object(store, "keep_tidy", _nothing_to_tidy))
        yield
