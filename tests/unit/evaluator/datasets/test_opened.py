"""A dataset that is opened for a job."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.evaluator.datasets.opened import OpenDatasets
from tests.dataset_store import DATASET_ID, MemoryStore, row
from touchstone.v1.job_pb2 import DatasetWork
from touchstone.v1.scoring_pb2 import Scoring


async def test_a_scoring_that_cannot_be_used_is_refused_before_anything_is_read() -> None:
    memory = MemoryStore()
    work = DatasetWork(dataset_id=DATASET_ID, scoring=Scoring(answer_pattern="("))
    with pytest.raises(InvalidRequestError, match="answer_pattern"):
        await OpenDatasets(memory).open(work)


async def test_a_job_may_be_scored_otherwise_than_its_dataset() -> None:
    memory = MemoryStore()
    memory.add([row(1, reference="a b")], scoring=Scoring(scorer="token_f1"))
    datasets = OpenDatasets(memory)
    own = await datasets.task(DatasetWork(dataset_id=DATASET_ID))
    named = await datasets.task(DatasetWork(dataset_id=DATASET_ID, scorer="rouge_l"))
    whole = await datasets.task(DatasetWork(dataset_id=DATASET_ID, scoring=Scoring(scorer="contains")))
    assert [task.scorer_version for task in (own, named, whole)] == ["token_f1-1", "rouge_l-1", "contains-2"]
    assert len({task.item_set for task in (own, named, whole)}) == 3
    assert await datasets.task(DatasetWork(dataset_id=DATASET_ID)) is own
