"""Datasets behind the fake services: lines are kept as they come, and must be JSON objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from services import rpc
from services.errors import BadLinesError, ConflictError, InvalidRequestError, NotFoundError, UnavailableError
from tests.gateway.fake_world import LIVE, World, start_of
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2, scoring_pb2


def add(world: World, options: dataset_pb2.DatasetOptions, data: bytes) -> dataset_pb2.Dataset:
    """Keeps the lines. Raises BadLinesError for those that are no objects."""
    bad, rows = [], []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            values = json.loads(line)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            bad.append((number, "The line is no JSON object."))
            continue
        row = dataset_pb2.DatasetRow(custom_id=values.get("custom_id", f"row-{number}"))
        row.messages.add(role="user", content=str(values.get("prompt", "")))
        if "reference" in values:
            row.reference = json.dumps(values["reference"])
        if "metadata" in values:
            row.metadata = json.dumps(values["metadata"])
        if "max_tokens" in values:
            row.sampling.max_tokens = values["max_tokens"]
        rows.append(row)
    if bad:
        raise BadLinesError(f"{len(bad)} lines are wrong.", bad[:100], len(bad))
    if not rows:
        raise InvalidRequestError("The file has no rows.", "data")
    made = dataset_pb2.Dataset(
        dataset_id=f"ds_{len(world.datasets):032x}",
        name=options.name,
        owner=rpc.identity().user,
        project_id=options.project_id,
        format=options.format or dataset_pb2.Dataset.FORMAT_LINES,
        rows=len(rows),
        bytes=len(data),
        digest="d1" * 32,
        rows_with_reference=sum(bool(row.reference) for row in rows),
        scoring=options.scoring,
        template=options.template,
    )
    made.uploaded_at.GetCurrentTime()
    world.datasets[made.dataset_id] = made
    world.rows[made.dataset_id] = rows
    return made


async def upload(world: World, requests: Any) -> dataset_service_pb2.UploadDatasetResponse:
    """At the pace that `world.upload_gate` allows."""
    options, data, request_id = None, bytearray(), ""
    try:
        async for request in requests:
            options = options or request.options
            request_id = request_id or request.request_id
            data += request.data
            world.upload_bytes += len(request.data)
            if request.data:
                await world.upload_gate.wait()
        # A call that is cancelled ends its requests first: reading them takes time, in which the rest is heard.
        await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        world.uploads_cut += 1
        raise
    assert options is not None
    world.options.append(options)
    made = once(world, request_id, (options, bytes(data)), lambda: add(world, options, bytes(data)))
    return dataset_service_pb2.UploadDatasetResponse(dataset=made)


def once(
    world: World, request_id: str, asked: tuple[Any, ...], make: Callable[[], dataset_pb2.Dataset]
) -> dataset_pb2.Dataset:
    """What the request has made before, if it was the same."""
    known = world.dataset_requests.get(request_id)
    if known is not None and known[0] != asked:
        raise ConflictError(f"request_id {request_id} has made dataset {known[1]}, which is another one.")
    made = world.datasets[known[1]] if known is not None else make()
    if request_id:
        world.dataset_requests[request_id] = (asked, made.dataset_id)
    return made


def create_from_hub(
    world: World, request: dataset_service_pb2.CreateHubDatasetRequest
) -> dataset_service_pb2.CreateHubDatasetResponse:
    world.options.append(request.options)
    source = request.source
    if source.dataset == "nobody/answers":
        raise UnavailableError("No evaluator is live. Start one, then try again.")
    if "/" not in source.dataset:
        raise InvalidRequestError(f"{source.dataset[:80]!r} is no Hub dataset.", "source.dataset")
    options = dataset_pb2.DatasetOptions()
    options.CopyFrom(request.options)
    options.name = options.name or f"{source.dataset}/{source.config or 'default'}/{source.split}"

    def make() -> dataset_pb2.Dataset:
        made = add(world, options, b'{"prompt": "a"}\n' * (request.limit or 3))
        made.source.CopyFrom(source)
        made.source.revision = "c0ffee" * 6
        return made

    made = once(world, request.request_id, (options, source, request.limit), make)
    return dataset_service_pb2.CreateHubDatasetResponse(dataset=made)


def of(world: World, dataset_id: str) -> dataset_pb2.Dataset:
    if dataset_id not in world.datasets:
        raise NotFoundError(f"Dataset {dataset_id} not found")
    return world.datasets[dataset_id]


def _live(world: World, dataset_id: str) -> list[job_pb2.Job]:
    return [job for job in world.jobs.values() if job.spec.dataset.dataset_id == dataset_id and job.state in LIVE]


def _finished(world: World, dataset_id: str) -> int:
    over = [job for job in world.jobs.values() if job.spec.dataset.dataset_id == dataset_id]
    return len(over) - len(_live(world, dataset_id))


def get(world: World, request: dataset_service_pb2.GetDatasetRequest) -> dataset_service_pb2.GetDatasetResponse:
    found = of(world, request.dataset_id)
    return dataset_service_pb2.GetDatasetResponse(
        dataset=found,
        live_jobs=len(_live(world, request.dataset_id)),
        finished_jobs=_finished(world, request.dataset_id),
    )


def list_(world: World, request: dataset_service_pb2.ListDatasetsRequest) -> dataset_service_pb2.ListDatasetsResponse:
    found = [
        one
        for one in reversed(world.datasets.values())
        if request.owner in ("", one.owner)
        and request.project_id in (0, one.project_id)
        and request.query.lower() in one.name.lower()
    ]
    first, size = start_of(request.page_token), request.page_size or 100
    return dataset_service_pb2.ListDatasetsResponse(
        datasets=found[first : first + size],
        finished_jobs=[_finished(world, one.dataset_id) for one in found[first : first + size]],
        next_page_token=str(first + size) if first + size < len(found) else "",
        total_size=len(found),
    )


def list_rows(
    world: World, request: dataset_service_pb2.ListDatasetRowsRequest
) -> dataset_service_pb2.ListDatasetRowsResponse:
    of(world, request.dataset_id)
    rows = world.rows[request.dataset_id]
    first, size = start_of(request.page_token), request.page_size or 20
    after = str(first + size) if first + size < len(rows) else ""
    return dataset_service_pb2.ListDatasetRowsResponse(
        rows=rows[first : first + size], first=first, next_page_token=after
    )


def delete(
    world: World, request: dataset_service_pb2.DeleteDatasetRequest
) -> dataset_service_pb2.DeleteDatasetResponse:
    of(world, request.dataset_id)
    if live := _live(world, request.dataset_id):
        raise ConflictError(f"Job {live[0].job_id} uses the dataset. Wait for it or cancel it.")
    del world.datasets[request.dataset_id]
    return dataset_service_pb2.DeleteDatasetResponse(finished_jobs=_finished(world, request.dataset_id))


def fill_in(world: World, spec: job_pb2.JobSpec) -> None:
    """What the scheduler writes into a job over a dataset. Raises NotFoundError."""
    found = of(world, spec.dataset.dataset_id)
    spec.dataset.name, spec.dataset.digest = found.name, found.digest
    spec.priority = spec.priority or job_pb2.PRIORITY_NORMAL
    if not spec.dataset.HasField("scoring"):
        spec.dataset.scoring.CopyFrom(
            scoring_pb2.Scoring(scorer=spec.dataset.scorer) if spec.dataset.scorer else found.scoring
        )
