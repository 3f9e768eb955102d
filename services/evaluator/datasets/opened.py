"""Datasets that this process runs jobs over."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Mapping

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.scorers.choosing import NONE_PLUGGED, check_scoring
from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.datasets.store import DatasetStore, Shelf
from services.evaluator.datasets.task import DatasetTask
from services.words.scorers import SCORERS
from touchstone.v1.dataset_pb2 import DatasetManifest
from touchstone.v1.job_pb2 import DatasetWork
from touchstone.v1.scoring_pb2 import Scoring

_REMEMBERED = 32
_Key = tuple[bytes, Layer | None]


class OpenDatasets:
    """The tasks of dataset jobs; those used last are kept."""

    def __init__(self, store: DatasetStore | None, plugged: Mapping[str, Scorer] = NONE_PLUGGED) -> None:
        """`plugged` are the scorers of plug-ins."""
        self._plugged = plugged
        self._shelf = Shelf(store)
        self._tasks: OrderedDict[_Key, DatasetTask] = OrderedDict()
        self._opening: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)

    def plugin(self, work: DatasetWork) -> str:
        """The package of the plug-in's scorers that the job names, with its version; empty without any, and where one
        is not here. A job that takes its dataset's own scorer was given its name when it was created."""
        named = (work.scoring.scorer or work.scorer, *(one.scorer for one in work.further))
        wanted = [name for name in named if name and name not in SCORERS]
        found = {self._plugged[name].plugin if name in self._plugged else "" for name in wanted}
        return found.pop() if len(found) == 1 else ""

    async def open(self, work: DatasetWork, reading: Layer | None = None) -> DatasetTask:
        """For a job that begins: the dataset must exist. Raises InvalidRequestError for a scoring that cannot be used,
        and DataError."""
        if work.HasField("scoring"):
            check_scoring(work.scoring, self._plugged)
        manifest = await self._shelf.manifest(work.dataset_id, work.name)
        return await self._made(_key(work, reading), work, reading, manifest)

    async def task(self, work: DatasetWork, reading: Layer | None = None) -> DatasetTask:
        """For a unit. Raises as `open`."""
        key = _key(work, reading)
        task = self._tasks.get(key)
        if task is None:
            async with self._opening[key]:
                task = self._tasks.get(key) or await self._made(
                    key, work, reading, await self._shelf.manifest(work.dataset_id, work.name)
                )
            self._opening.pop(key, None)
        if key in self._tasks:
            self._tasks.move_to_end(key)
        return task

    async def _made(
        self, key: _Key, work: DatasetWork, reading: Layer | None, manifest: DatasetManifest
    ) -> DatasetTask:
        scoring = _scoring(work, manifest.dataset.scoring)
        # In a thread: choosing a hundred of a million rows takes a second.
        task = await asyncio.to_thread(
            DatasetTask, manifest, scoring, work.limit, work.seed, self._shelf, reading, self._plugged, work.further
        )
        self._tasks[key] = task
        while len(self._tasks) > _REMEMBERED:
            self._tasks.popitem(last=False)
        return task


def _scoring(work: DatasetWork, own: Scoring) -> Scoring:
    """As DatasetWork says: `scoring`, else `scorer` without options, else the dataset's scoring."""
    if work.HasField("scoring"):
        return work.scoring
    return Scoring(scorer=work.scorer) if work.scorer else own


def _key(work: DatasetWork, reading: Layer | None) -> _Key:
    return work.SerializeToString(deterministic=True), reading
