"""Tasks over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.evaluator.datasets.store import Shelf
from services.evaluator.datasets.task import DatasetTask
from services.evaluator.items.task import Item
from tests.dataset_store import DATASET_ID, MemoryStore
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import Sampling
from touchstone.v1.scoring_pb2 import Scoring

NOTHING = Sampling()


def opened(
    memory: MemoryStore, scoring: Scoring | None = None, limit: int = 0, seed: int = 0, **options: Any
) -> DatasetTask:
    return DatasetTask(memory.manifests[DATASET_ID], scoring or Scoring(), limit, seed, Shelf(memory), **options)


def task_of(rows_: Sequence[DatasetRow], scoring: Scoring | None = None, **options: Any) -> DatasetTask:
    memory = MemoryStore()
    memory.add(rows_, scoring=options.pop("own", None), shard_rows=options.pop("shard_rows", 1000))
    return opened(memory, scoring, **options)


async def all_items(task: DatasetTask, sampling: Sampling = NOTHING) -> list[Item]:
    return await task.items(range(len(task.chosen)), sampling)
