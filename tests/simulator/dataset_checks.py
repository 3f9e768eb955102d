"""What must hold of datasets when a simulation is over. Read from the store's messages, not by the services' code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.simulator.dataset_history import GONE, Datasets
from tests.simulator.history import COMPLETED, FAILED
from tests.simulator.memory_datasets import Tables
from tests.simulator.streams import Stream
from touchstone.v1 import dataset_pb2

_META, _PIECES = "$O.DATASETS.M.", "$O.DATASETS.C."
_UNREADABLE = "cannot be read whole"


@dataclass(frozen=True)
class Store:
    """What the object store holds at one moment."""

    stream: Stream

    @cached_property
    def objects(self) -> dict[str, bytes | None]:
        """By name, the content; None where that is not what it should be."""
        found: dict[str, bytes | None] = {}
        for info in self._infos():
            pieces = self.stream.by_subject.get(_PIECES + info["nuid"], ())
            data = b"".join(self.stream.messages[sequence].data for sequence in pieces)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
            found[info["name"]] = data if info["digest"] == f"SHA-256={digest}" else None
        return found

    def _infos(self) -> Iterator[dict[str, str]]:
        for subject, sequences in self.stream.by_subject.items():
            if subject.startswith(_META):
                yield json.loads(self.stream.messages[sequences[-1]].data)

    @cached_property
    def manifests(self) -> dict[str, dataset_pb2.DatasetManifest | None]:
        """By dataset; None for one that cannot be read."""
        return {
            name.removeprefix("manifest/"): None if data is None else dataset_pb2.DatasetManifest.FromString(data)
            for name, data in self.objects.items()
            if name.startswith("manifest/")
        }

    def is_unmarked(self, dataset_id: str) -> bool:
        """Whether a dataset is there, and no deletion has marked it."""
        manifest = self.manifests.get(dataset_id)
        return manifest is not None and not manifest.deleting

    def strays(self) -> int:
        """Objects' pieces that no object names."""
        named = {_PIECES + info["nuid"] for info in self._infos()}
        return sum(subject.startswith(_PIECES) and subject not in named for subject in self.stream.by_subject)

    def wanted(self) -> set[str]:
        """Names of shards that datasets have."""
        return {
            f"shard/{shard.digest}" for manifest in self.manifests.values() if manifest for shard in manifest.shards
        }


def untidy(store: Store, tables: Tables) -> str:
    """What the results service has still to clear up, in words; empty at the end."""
    for dataset_id, manifest in store.manifests.items():
        if manifest is not None and manifest.deleting:
            return f"dataset {dataset_id} is marked as being deleted"
    if differing := tables.listed ^ store.manifests.keys():
        return f"dataset {min(differing)} is listed without a manifest, or has one and is not listed"
    free = {name for name in store.objects if name.startswith("shard/")} - store.wanted()
    if free or store.strays():
        return f"{len(free)} shards of no dataset are left, and pieces of {store.strays()} objects"
    return ""


def violations(datasets: Datasets, store: Store) -> Iterator[str]:
    """Every broken invariant in words, once everything is tidy."""
    yield from _kept(datasets, store)
    yield from _jobs(datasets)


def _kept(datasets: Datasets, store: Store) -> Iterator[str]:
    for dataset_id, dataset in datasets.kept.items():
        if dataset_id in datasets.deleted:
            if dataset_id in store.manifests:
                yield f"the deletion of dataset {dataset_id} was acknowledged, and it is there"
        elif dataset_id in store.manifests:
            yield from _whole(store, dataset)
        elif not datasets.open[dataset_id]:
            how = "its deletion was refused" if dataset_id in datasets.asked else "nobody asked for its deletion"
            yield f"the acknowledged dataset {dataset_id} is not there, and {how}"
    requests = Counter(manifest.request_id for manifest in store.manifests.values() if manifest is not None)
    for request_id, times in requests.items():
        if request_id and times > 1:
            yield f"{request_id} made {times} datasets"


def _whole(store: Store, dataset: dataset_pb2.Dataset) -> Iterator[str]:
    manifest = store.manifests[dataset.dataset_id]
    if manifest is None:
        yield f"the manifest of dataset {dataset.dataset_id} cannot be read"
        return
    rows = 0
    for shard in manifest.shards:
        data = store.objects.get(f"shard/{shard.digest}")
        if data is None:
            yield f"a shard of dataset {dataset.dataset_id} is gone or cannot be read"
            return
        rows += len(dataset_pb2.ShardRows.FromString(data).rows)
    if rows != dataset.rows:
        yield f"dataset {dataset.dataset_id} has {rows} rows of {dataset.rows}"


def _jobs(datasets: Datasets) -> Iterator[str]:
    for job_id in datasets.history.records:
        job = datasets.history.job(job_id)
        work = job.spec.dataset
        if not work.dataset_id:
            continue
        rows = datasets.history.rows_of(work.dataset_id)
        wanted = min(work.limit or rows, rows)
        if job.state == COMPLETED and [plan.items for plan in job.plan] != [wanted]:
            yield f"job {job_id} over dataset {work.dataset_id} is complete and was not planned with {wanted} rows"
        if job.state != FAILED:
            continue
        if GONE in job.reason and work.dataset_id not in datasets.asked:
            yield f"job {job_id} failed, and nobody asked for the deletion of its dataset: {job.reason}"
        if _UNREADABLE in job.reason:
            yield f"job {job_id} failed: {job.reason}"
