"""Datasets behind the fake services: lines are kept as they come, and must be JSON objects."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from services import rpc
from services.errors import ConflictError, NotFoundError, UnavailableError
from services.evaluator.hub_import.splits import SplitReader
from services.results.datasets import child, servicer, stored_rows
from services.results.datasets.frames import HEADER, Kind, Limits, Shard
from services.results.datasets.reading import previewing
from services.results.datasets.reading.reader import read
from services.words import plugins, refusals
from tests.gateway import fake_data, fake_pages
from tests.gateway.fake_world import LIVE, World
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2


def add(world: World, asked: dataset_pb2.DatasetOptions, data: bytes) -> dataset_pb2.Dataset:
    """Keeps the rows that the real reader finds. Raises InvalidRequestError, BadLinesError."""
    return _kept(world, asked, *_read(asked, data))


def _read(asked: dataset_pb2.DatasetOptions, data: bytes) -> tuple[dataset_pb2.Dataset, list[dataset_pb2.DatasetRow]]:
    frames: list[bytes] = []
    read([data], asked, Limits(), frames.append)
    rows: list[dataset_pb2.DatasetRow] = []
    found = dataset_pb2.Dataset()
    for one in frames:
        kind, payload = HEADER.unpack_from(one)[0], one[HEADER.size :]
        if kind == Kind.SHARD:
            rows += dataset_pb2.ShardRows.FromString(Shard.parse(payload).data).rows
        elif kind == Kind.DATASET:
            found.ParseFromString(payload)
        else:
            raise child.refusal(kind, payload, asked.name)
    return found, rows


async def preview_of(requests: Any) -> dataset_service_pb2.PreviewDatasetResponse:
    """What the real reader makes of the file."""
    asked, data = None, bytearray()
    async for request in requests:
        asked = asked or request.options
        data += request.data
    named = servicer.checked(asked or dataset_pb2.DatasetOptions(), rpc.identity())
    frames: list[bytes] = []
    previewing.preview([bytes(data)], named, Limits(), frames.append)
    kind, payload = HEADER.unpack_from(frames[0])[0], frames[0][HEADER.size :]
    if kind != Kind.PREVIEW:
        raise child.refusal(kind, payload, named.name)
    return dataset_service_pb2.PreviewDatasetResponse.FromString(payload)


def _kept(
    world: World,
    asked: dataset_pb2.DatasetOptions,
    made: dataset_pb2.Dataset,
    rows: list[dataset_pb2.DatasetRow],
) -> dataset_pb2.Dataset:
    made.dataset_id = f"ds_{uuid.uuid4().hex}"
    made.name, made.owner, made.project_id, made.template = asked.name, asked.owner, asked.project_id, asked.template
    made.scoring.CopyFrom(asked.scoring)
    made.uploaded_at.GetCurrentTime()
    world.datasets[made.dataset_id] = made
    world.rows[made.dataset_id] = rows
    return made


async def upload(world: World, requests: Any) -> dataset_service_pb2.UploadDatasetResponse:
    """At the pace that `world.upload_gate` allows."""
    asked, data, request_id, expires_after_s = None, bytearray(), "", 0
    try:
        async for request in requests:
            asked = asked or request.options
            request_id = request_id or request.request_id
            expires_after_s = expires_after_s or request.expires_after_s
            data += request.data
            world.upload_bytes += len(request.data)
            if request.data:
                await world.upload_gate.wait()
        # A call that is cancelled ends its requests first: reading them takes time, in which the rest is heard.
        await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        world.uploads_cut += 1
        raise
    assert asked is not None
    world.options.append(asked)
    rpc.check_request_id(request_id)
    named = servicer.checked(asked, rpc.identity())
    servicer.require_scorer(asked.scoring, plugins.scorers([fake_data.evaluator()]))
    found, rows = _read(named, bytes(data))
    # Other bytes of the same rows are the same request.
    made = once(world, request_id, (named, found.digest), lambda: _kept(world, named, found, rows))
    if expires_after_s:
        made.expires_at.FromSeconds(made.uploaded_at.seconds + servicer.checked_expiry(expires_after_s))
    return dataset_service_pb2.UploadDatasetResponse(dataset=made)


def once(
    world: World, request_id: str, asked: tuple[Any, ...], make: Callable[[], dataset_pb2.Dataset]
) -> dataset_pb2.Dataset:
    """What the request has made before, if it was the same."""
    known = world.dataset_requests.get(request_id)
    if known is not None and known[0] != asked:
        raise ConflictError(refusals.id_used(request_id, f"dataset {known[1]}"))
    made = world.datasets[known[1]] if known is not None else make()
    if request_id:
        world.dataset_requests[request_id] = (asked, made.dataset_id)
    return made


async def create_from_hub(
    world: World, request: dataset_service_pb2.CreateHubDatasetRequest
) -> dataset_service_pb2.CreateHubDatasetResponse:
    """By the evaluator's own reader, over its bundled data and a Hub that has the same seven rows of everything."""
    world.options.append(request.options)
    rpc.check_request_id(request.request_id)
    named = servicer.checked_hub(request.options, request.source, rpc.identity())
    asked = (named, request.source, request.limit)
    # The Hub may have other rows by now: a request that was served is not read again.
    if request.request_id not in world.dataset_requests:
        if request.source.dataset == "nobody/answers":
            raise UnavailableError("No evaluator is running to read the dataset. Start one.")
        split = await SplitReader(None, _load).open(request)
        found, rows = _read(named, b"".join([piece async for piece in split.pieces]))
        found.source.CopyFrom(split.source)
        made = once(world, request.request_id, asked, lambda: _kept(world, named, found, rows))
    else:
        made = once(world, request.request_id, asked, dataset_pb2.Dataset)
    return dataset_service_pb2.CreateHubDatasetResponse(dataset=made)


def _load(dataset: str, config: str, split: str, revision: str) -> tuple[pa.Table, str]:
    rows = [{"question": f"Question {n}", "q": f"Question {n}", "answer": str(n)} for n in range(7)]
    return pa.Table.from_pylist(rows), "c0ffee" * 6


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
        if not (one.HasField("judging") or one.HasField("experiment"))
        if request.owner in ("", one.owner)
        and request.project_id in (0, one.project_id)
        and request.query.lower() in one.name.lower()
    ]
    page, token = fake_pages.page(request, found, 100)
    return dataset_service_pb2.ListDatasetsResponse(
        datasets=page,
        finished_jobs=[_finished(world, one.dataset_id) for one in page],
        next_page_token=token,
        total_size=len(found),
    )


def list_rows(
    world: World, request: dataset_service_pb2.ListDatasetRowsRequest
) -> dataset_service_pb2.ListDatasetRowsResponse:
    of(world, request.dataset_id)
    rows = world.rows[request.dataset_id][request.first :]
    page, token = fake_pages.page(request, rows, 20)
    answer = dataset_service_pb2.ListDatasetRowsResponse(
        rows=page, first=request.first + fake_pages.start(request), next_page_token=token
    )
    for row in () if request.whole else answer.rows:
        stored_rows.cut(row)
    return answer


def delete(
    world: World, request: dataset_service_pb2.DeleteDatasetRequest
) -> dataset_service_pb2.DeleteDatasetResponse:
    of(world, request.dataset_id)
    if live := _live(world, request.dataset_id):
        raise ConflictError(f"Job {live[0].job_id} uses the dataset. Wait for it or cancel it.")
    del world.datasets[request.dataset_id]
    return dataset_service_pb2.DeleteDatasetResponse(finished_jobs=_finished(world, request.dataset_id))
