"""The stand-in for answers of decisions says what DuckDB says."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from services.results.decisions import answers
from services.results.intake import writes
from services.results.storage.migrations import open_file
from tests.simulator import memory_store
from tests.simulator.decisions import failed_first, stored_answers
from touchstone.v1 import item_result_pb2, job_pb2

_TASKS = {"a": 12, "b": 5}
_ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
_OUTCOMES = (item_result_pb2.OUTCOME_ANSWERED, item_result_pb2.OUTCOME_UNPARSED, _ERROR)


def _batch(chance: Random) -> item_result_pb2.ItemResultBatch:
    task = chance.choice(list(_TASKS))
    batch = item_result_pb2.ItemResultBatch(job_id="j", attempt=chance.randint(1, 2), task=task)
    for item in chance.sample(range(_TASKS[task]), 3):
        added = batch.items.add(item=item, position=item, outcome=chance.choice(_OUTCOMES))
        if added.outcome != _ERROR and chance.random() < 0.8:
            added.statistics["correct"] = float(chance.random() < 0.5)
    return batch


def _rows(found: Any) -> list[tuple[int, int, bool, bool, float | None]]:
    scores = np.ma.filled(found["score"].astype(float), np.nan)
    columns = (found["place"], found["position"], found["answered"], found["again"], scores)
    return sorted(
        (int(place), int(position), bool(answered), bool(again), None if np.isnan(score) else float(score))
        for place, position, answered, again, score in zip(*columns, strict=True)
    )


def test_both_stores_give_the_same_answers(tmp_path: Path) -> None:
    chance = Random(2)
    job = job_pb2.Job(job_id="j")
    for task, items in _TASKS.items():
        job.plan.add(task=task, items=items)
    real = open_file(tmp_path / "touchstone.duckdb")
    memory = memory_store.MemoryConnection(memory_store.Stored())
    for _ in range(30):
        batch = _batch(chance)
        writes.store_items(real, [batch])
        memory_store.store_items(memory, [batch])
        kinds = ["", ""]
        assert _rows(stored_answers(memory, job, kinds)) == _rows(answers._stored(real, job, kinds))
    for attempt, failed in ((1, 0), (2, 3), (3, 1)):
        job.attempt, job.progress.items_failed = attempt, failed
        event = job_pb2.JobEvent(event_id=f"{9 + attempt}", action="retried" if attempt > 1 else "created", job=job)
        writes.store_events(real, [event])
        memory_store.store_events(memory, [event])
        assert failed_first(memory, job) == answers._failed_first(real, job) == (3 if attempt > 1 else 0)
    real.close()
