"""The index of datasets in memory, and their reader without a process: see `memory_store`.

Everything else that keeps datasets runs as it is: uploads, deletions, the collector, and the object store over NATS.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from unittest.mock import patch

from services.errors import ConflictError, DeadlineError, NotFoundError
from services.results.datasets import child, frames, index
from services.results.datasets.frames import HEADER, Kind, Shard
from services.results.datasets.reading import reader, shards
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from services.words.jobs import LIVE
from touchstone.v1 import dataset_pb2

ROWS_A_SHARD = 2
"""In place of a thousand, so that small datasets have several shards, and share some."""
_READING_S = 0.02


@dataclass
class Tables:
    """What the tables about datasets hold."""

    datasets: dict[str, tuple[dataset_pb2.Dataset, bool]] = field(default_factory=dict)
    """With whether each is deleted."""
    shards: dict[str, frozenset[str]] = field(default_factory=dict)
    """By dataset, the digests of its shards."""
    requests: dict[tuple[str, str], tuple[bytes, str, datetime]] = field(default_factory=dict)
    """By owner and request id: what was asked for, the dataset that was made, and when."""

    @property
    def listed(self) -> set[str]:
        return {dataset_id for dataset_id, (_, is_deleted) in self.datasets.items() if not is_deleted}


def _tables(connection: Any) -> Tables:
    tables: Tables = connection.stored.tables
    return tables


def add(connection: Any, manifest: dataset_pb2.DatasetManifest, now: datetime) -> None:
    tables, dataset = _tables(connection), manifest.dataset
    if dataset.dataset_id in tables.listed:
        return
    tables.shards[dataset.dataset_id] = frozenset(shard.digest for shard in manifest.shards)
    if dataset.dataset_id in tables.datasets:
        tables.datasets[dataset.dataset_id] = tables.datasets[dataset.dataset_id][0], False
        return
    tables.datasets[dataset.dataset_id] = dataset_pb2.Dataset.FromString(dataset.SerializeToString()), False
    for key, (_, _, made_at) in list(tables.requests.items()):
        if made_at <= now - index.REQUESTS_KEPT:
            del tables.requests[key]
    made = manifest.asked, dataset.dataset_id, dataset.uploaded_at.ToDatetime()
    if manifest.request_id and made[2] > now - index.REQUESTS_KEPT:
        tables.requests[dataset.owner, manifest.request_id] = made


def mark_deleted(connection: Any, dataset_id: str, now: datetime) -> None:
    tables = _tables(connection)
    if dataset_id in tables.datasets:
        tables.datasets[dataset_id] = tables.datasets[dataset_id][0], True
    tables.shards.pop(dataset_id, None)


def get(connection: Any, dataset_id: str, visible: Visibility = EVERYTHING) -> dataset_pb2.Dataset:
    dataset, is_deleted = _tables(connection).datasets.get(dataset_id, (dataset_pb2.Dataset(), True))
    owner = visible.parameters["visible_owner"]
    if is_deleted or owner not in ("", dataset.owner):
        raise NotFoundError(f"Dataset {dataset_id[:100]} not found")
    return dataset


def of_experiment(connection: Any, name: str) -> dataset_pb2.Dataset | None:
    tables = _tables(connection)
    made = (dataset for dataset, is_deleted in tables.datasets.values() if not is_deleted)
    found = [dataset for dataset in made if name and dataset.experiment.name == name]
    return max(found, key=lambda one: (one.uploaded_at.ToNanoseconds(), one.dataset_id), default=None)


def jobs_over(connection: Any, dataset_ids: Collection[str]) -> list[index.Jobs]:
    jobs = [job for _, job in connection.stored.jobs.values()]
    found = []
    for dataset_id in dataset_ids:
        over = [job.state in LIVE for job in jobs if job.spec.dataset.dataset_id == dataset_id]
        found.append(index.Jobs(sum(over), len(over) - sum(over)))
    return found


def listed(connection: Any) -> set[str]:
    return _tables(connection).listed


def without_dataset(connection: Any, digests: Collection[str]) -> set[str]:
    return set(digests).difference(*_tables(connection).shards.values())


def made_by(connection: Any, request: index.Request, now: datetime) -> dataset_pb2.Dataset | None:
    tables = _tables(connection)
    asked, dataset_id, made_at = tables.requests.get((request.owner, request.request_id), (b"", "", now))
    if dataset_id not in tables.listed or made_at <= now - index.REQUESTS_KEPT:
        return None
    if asked != request.asked:
        raise ConflictError(refusals.id_used(request.request_id, f"dataset {dataset_id}"))
    return tables.datasets[dataset_id][0]


async def read(
    asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes], limits: frames.Limits, idle_s: float
) -> AsyncGenerator[Shard | dataset_pb2.Dataset]:
    """In place of `child.read`: the same reading, here."""
    taken: list[bytes] = []
    while True:
        try:
            async with asyncio.timeout(idle_s):
                piece = await anext(pieces, None)
        except TimeoutError as error:
            raise DeadlineError(f"No data arrived for {idle_s:.0f} s.") from error
        if piece is None:
            break
        taken.append(piece)
    told: list[bytes] = []
    reader.read(taken, asked, limits, told.append)
    for frame in told:
        await asyncio.sleep(_READING_S)
        kind, _ = HEADER.unpack_from(frame)
        payload = frame[HEADER.size :]
        if kind == Kind.SHARD:
            yield Shard.parse(payload)
        elif kind == Kind.DATASET:
            yield dataset_pb2.Dataset.FromString(payload)
        else:
            raise child.refusal(kind, payload, asked.name)


@contextmanager
def installed() -> Iterator[None]:
    """Inside, the results service keeps its index of datasets in memory."""
    here = globals()
    with ExitStack() as stack:
        for name in (
            "add",
            "mark_deleted",
            "get",
            "of_experiment",
            "jobs_over",
            "listed",
            "without_dataset",
            "made_by",
        ):
            stack.enter_context(patch.object(index, name, here[name]))
        stack.enter_context(patch.object(child, "read", read))
        stack.enter_context(patch.object(shards, "MOST_ROWS", ROWS_A_SHARD))
        yield
