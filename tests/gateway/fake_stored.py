"""Items, exports, annotations and leaderboards of the fakes: the results service's own code over a database with the
world's jobs."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path

from services import rpc
from services.results.boards import leaderboard as boards
from services.results.datasets import index
from services.results.export import exports
from services.results.intake import writes
from services.results.items import annotate as annotating
from services.results.items import reads
from services.results.judging import ratings
from services.results.scores.job_result import Computed
from services.results.side_by_side.listing import SideBySide
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from services.words import suites
from services.words.enums import MARKS
from services.words.jobs import suite_of
from tests.gateway import fake_data, fake_items
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, metric_pb2
from touchstone.v1 import results_service_pb2 as pb

_MOST_KEPT = 8
_kept: dict[tuple[bytes, object], Connection] = {}
"""By what they hold and what made their items, the one read last at the end. None is ever committed."""


@functools.cache
def _database() -> Connection:
    """One without rows, for the whole process: to make it takes half a second."""
    with tempfile.TemporaryDirectory() as folder:
        # Nothing is ever committed, so nobody misses the file.
        return open_file(Path(folder) / "results.duckdb")


def holding(world: World, jobs: Sequence[job_pb2.Job], *, items: bool = False) -> Connection:
    """A database with these jobs and what they measured; with `items` also their items. To store a job takes 10 ms, so
    that what was read a moment ago is kept."""
    results = [world.results.get(job.job_id, metric_pb2.JobResult()) for job in jobs]
    told = sha256(bytes([items]))
    for message in chain(jobs, results, world.names.values()):
        told.update(message.SerializeToString(deterministic=True))
    if items:
        for part in _sources(world, jobs):
            told.update(part)
    # A test may exchange the function.
    key = told.digest(), fake_items.items
    connection = _kept.pop(key, None)
    if connection is None or not _follow(connection, world):
        connection = _database().cursor()
        connection.begin()
        for number, (job, result) in enumerate(zip(jobs, results, strict=True)):
            _put(connection, job, result, number)
            if items and (answers := fake_items.items(world, job.job_id)):
                _put_items(connection, job, answers)
        for one in world.names.values():
            connection.execute(
                "INSERT INTO configuration_names VALUES (?, ?, ?, '', '2026-01-01')",
                [one.configuration, one.name, one.alias],
            )
        _follow(connection, world)
    _kept[key] = connection
    if len(_kept) > _MOST_KEPT:
        _kept.pop(next(iter(_kept))).close()
    return connection


def _follow(connection: Connection, world: World) -> bool:
    """Adds what people have said since. Returns False where the database has something else."""
    said = {"preferences": world.preferences, "rubrics": [], "ratings": [], **world.ratings}
    for table, rows in said.items():
        held = connection.execute(f"FROM {table} ORDER BY number").fetchall()
        if held != rows[: len(held)]:
            return False
        for row in rows[len(held) :]:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return True


def _sources(world: World, jobs: Sequence[job_pb2.Job]) -> Iterator[bytes]:
    """What items follow from, apart from the jobs and their results: to make the items only to compare them takes as
    long as to store them."""
    for job in jobs:
        for row in world.rows.get(job.spec.dataset.dataset_id, []):
            yield row.SerializeToString(deterministic=True)
        for place, said in world.annotations.items():
            if place[0] == job.job_id:
                yield repr(place).encode() + said.SerializeToString(deterministic=True)


def _put(connection: Connection, job: job_pb2.Job, found: metric_pb2.JobResult, number: int) -> None:
    event = job_pb2.JobEvent(event_id=f"{number:06d}", occurred_at=job.created_at, actor=job.owner, job=job)
    writes.store_events(connection, [event])
    result = metric_pb2.JobResult()
    result.CopyFrom(found)
    if not result.sealed:
        return
    if result.mark:
        connection.execute(
            "INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, '2026-01-01')",
            [number, job.job_id, MARKS[result.mark], result.mark_reason, result.superseded_by, job.owner],
        )
        result.not_ranked_reason = ""
    errors = result.outcomes.infrastructure_error
    computed = Computed(result, _averages(job, result), int(job.incomplete and not errors), errors)
    writes.write_seal(connection, job, computed, job.finished_at.ToDatetime(UTC))


def _averages(job: job_pb2.Job, result: metric_pb2.JobResult) -> list[tuple[metric_pb2.Metric, int]]:
    """By the suite's rule and, of several tasks, by each rule."""
    rules = (suites.UNSPECIFIED, suites.ITEMS, suites.TASKS)
    found = []
    for rule in rules if len(job.plan) > 1 else rules[:1]:
        for average in fake_data.averages(result):
            average.metric = suites.average_name(average.metric, rule)
            found.append((average, len(job.plan)))
    return found


def _put_items(connection: Connection, job: job_pb2.Job, stored: Sequence[pb.StoredItem]) -> None:
    batches = [
        item_result_pb2.ItemResultBatch(
            job_id=job.job_id,
            attempt=job.attempt,
            task=plan.task,
            items=[one.result for one in stored if one.task == plan.task],
        )
        for plan in job.plan
    ]
    writes.store_items(connection, batches)
    held = [(one.task, one.result.item, one.annotation) for one in stored if one.HasField("annotation")]
    for number, (task, item, said) in enumerate(held):
        connection.execute(
            "INSERT INTO annotations VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)",
            [
                *(number, job.job_id, task, item, said.verdict, said.corrected_answer, said.note, said.author),
                said.annotated_at.ToDatetime(),
            ],
        )


def list_items(world: World, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
    """Raises as the service."""
    connection = holding(world, _named(world, request.job_id, request.baseline_job_id), items=True)
    return reads.list_items(connection, request)


def get_item(world: World, request: pb.GetItemRequest) -> pb.GetItemResponse:
    """Raises as the service."""
    connection = holding(world, _named(world, request.job_id), items=True)
    return pb.GetItemResponse(item=reads.get_item(connection, request))


def export(world: World, request: pb.ExportRequest) -> list[pb.ExportResponse]:
    """The file's pieces. Raises as the service."""
    of_items = request.HasField("items") and request.kind != pb.ExportRequest.KIND_PREFERENCES
    jobs = _of_project(world, request.jobs.project_id)
    if of_items:
        jobs = _named(world, request.items.job_id, request.items.baseline_job_id)
    connection = holding(world, jobs, items=of_items)
    return list(exports.export(connection, request))


def annotate(world: World, request: pb.AnnotateItemRequest) -> pb.AnnotateItemResponse:
    """Raises as the service."""
    asked = pb.GetItemRequest(job_id=request.job_id, task=request.task, item=request.item, repeat=request.repeat)
    connection = holding(world, _named(world, request.job_id), items=True)
    annotating.annotate(connection, request, rpc.identity(), datetime.now(UTC).replace(tzinfo=None))
    item = reads.get_item(connection, asked)
    # It holds what the world had before.
    _kept.popitem()
    place = request.job_id, request.task, request.item
    world.annotations.pop(place, None)
    if item.HasField("annotation"):
        world.annotations[place] = item.annotation
    return pb.AnnotateItemResponse(item=item)


def side_by_side(world: World, request: pb.ListSideBySideRequest) -> pb.ListSideBySideResponse:
    """Raises as the service."""
    return SideBySide().rows(holding(world, _named(world, *request.job_ids), items=True), request)


def judge_row(world: World, request: pb.JudgeRowRequest) -> pb.JudgeRowResponse:
    """Raises as the service."""
    connection = holding(world, _named(world, *request.job_ids), items=True)
    now = datetime.now(UTC).replace(tzinfo=None)
    said = annotating.judge_row(connection, request, rpc.identity(), now)
    world.preferences = connection.execute("FROM preferences ORDER BY number").fetchall()
    # It holds what the world had before.
    _kept.popitem()
    return pb.JudgeRowResponse(preference=said)


def leaderboard(world: World, request: pb.GetLeaderboardRequest) -> pb.GetLeaderboardResponse:
    """Of the world's jobs on the suite. Raises as the service."""
    jobs = [job for job in _of_project(world, request.project_id) if suite_of(job.spec) == request.suite]
    connection = holding(world, jobs)
    if request.suite in world.datasets:
        manifest = dataset_pb2.DatasetManifest(dataset=world.datasets[request.suite])
        index.add(connection, manifest, datetime.now(UTC))
    return boards.leaderboard(connection, request, fake_data.suites(world.suites), places=_open)


def _of_project(world: World, project_id: int) -> list[job_pb2.Job]:
    """All of them for project 0."""
    return [job for job in world.jobs.values() if project_id in (0, job.spec.project_id)]


def _named(world: World, *job_ids: str) -> list[job_pb2.Job]:
    return [world.jobs[job_id] for job_id in dict.fromkeys(job_ids) if job_id in world.jobs]


def _open(average: str, job_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Every run may have any place: the fakes' runs share no items."""
    return dict.fromkeys(job_ids, (1, len(job_ids))) if len(job_ids) > 1 else {}


def list_unrated(world: World, request: pb.ListUnratedRequest, rater: str = "") -> pb.ListUnratedResponse:
    """Of the caller, or of somebody else. Raises as the service."""
    connection = holding(world, _named(world, request.job_id), items=True)
    return ratings.list_unrated(connection, request, rater or rpc.identity().user)


def rate(world: World, request: pb.RateAnswersRequest, rater: str = "") -> pb.RateAnswersResponse:
    """Of the caller, or of somebody else. Raises as the service."""
    connection = holding(world, _named(world, request.job_id), items=True)
    now = datetime.now(UTC).replace(tzinfo=None)
    stored = ratings.rate(connection, request, rater or rpc.identity().user, now)
    for table in ("rubrics", "ratings"):
        world.ratings[table] = connection.execute(f"FROM {table} ORDER BY number").fetchall()
    # It holds what the world had before.
    _kept.popitem()
    return stored


def list_ratings(world: World, request: pb.ListRatingsRequest) -> pb.ListRatingsResponse:
    """Raises as the service."""
    return ratings.list_ratings(holding(world, _named(world, request.job_id), items=True), request)
