"""The index of datasets in memory gives the answers that DuckDB gives, over drawn histories of changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from services.errors import TouchstoneError
from services.results.datasets import index
from services.results.datasets.index import Request
from services.results.intake import writes
from services.results.storage.migrations import open_file
from services.results.visibility import Visibility
from tests.simulator import memory_datasets, memory_store
from touchstone.v1 import dataset_pb2, job_pb2

_STATES = (job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_FAILED)
_DATASETS = [f"ds_{number:032x}" for number in range(4)]
_DIGESTS = [f"{number:064x}" for number in range(5)]
_NOW = datetime(2027, 1, 10)
"""UTC without a zone, as the index has it."""


class _Real:
    """The functions that need DuckDB under one name."""

    def __getattr__(self, name: str) -> Any:
        module: Any = writes if name == "store_events" else index
        return getattr(module, name)


class _Memory:
    def __getattr__(self, name: str) -> Any:
        return getattr(memory_store if name == "store_events" else memory_datasets, name)


def _change(chance: Random, number: int) -> Callable[[Any, Any], Any]:
    dataset_id = chance.choice(_DATASETS)
    if chance.random() < 0.3:
        return lambda m, c: m.mark_deleted(c, dataset_id, _NOW)
    if chance.random() < 0.3:
        job = job_pb2.Job(job_id=f"job-{number}", owner="ann", attempt=1, state=chance.choice(_STATES))
        job.spec.dataset.dataset_id = dataset_id
        event = job_pb2.JobEvent(event_id=f"{number:08d}", actor="ann", action="moved", job=job)
        event.occurred_at.FromSeconds(number + 1)
        return lambda m, c: m.store_events(c, [event])
    manifest = dataset_pb2.DatasetManifest(request_id=chance.choice(["", "a", "b"]), asked=chance.choice([b"x", b"y"]))
    manifest.dataset.dataset_id, manifest.dataset.owner = dataset_id, chance.choice(["ann", "bob"])
    manifest.dataset.uploaded_at.FromDatetime(_NOW - timedelta(hours=chance.choice([1, 30])))
    if number % 2:
        manifest.dataset.experiment.name = "tips"
    for digest in chance.sample(_DIGESTS, 2):
        manifest.shards.add(digest=digest, rows=1)
    return lambda m, c: m.add(c, manifest, _NOW)


def _questions() -> list[tuple[str, Callable[[Any, Any], Any]]]:
    asked = [Request(owner, name, b"x") for owner in ("ann", "bob") for name in ("", "a", "b")]
    return [
        ("listed", lambda m, c: m.listed(c)),
        ("free", lambda m, c: m.without_dataset(c, _DIGESTS)),
        ("experiment", lambda m, c: m.of_experiment(c, "tips")),
        ("none", lambda m, c: m.of_experiment(c, "")),
        ("jobs", lambda m, c: m.jobs_over(c, _DATASETS)),
        *((f"get {d}", lambda m, c, d=d: m.get(c, d)) for d in _DATASETS),
        *((f"of bob {d}", lambda m, c, d=d: m.get(c, d, Visibility("bob"))) for d in _DATASETS),
        *((f"find {r}", lambda m, c, r=r: m.made_by(c, r, _NOW)) for r in asked),
    ]


def _answer(ask: Callable[[Any, Any], Any], module: Any, connection: Any) -> Any:
    connection.begin()
    try:
        answer = ask(module, connection)
    except TouchstoneError as error:
        connection.rollback()
        return type(error).__name__
    connection.commit()
    return answer


def test_both_indexes_give_the_same_answers(tmp_path: Path) -> None:
    chance = Random(3)
    real = open_file(tmp_path / "touchstone.duckdb")
    memory = memory_store.MemoryConnection(memory_store.Stored())
    found: set[str] = set()
    for number in range(30):
        for what, ask in [("change", _change(chance, number)), *_questions()]:
            told = _answer(ask, _Memory(), memory)
            assert told == _answer(ask, _Real(), real), (number, what)
            found.add(told if isinstance(told, str) else what.split()[0] if told else "")
    assert {"listed", "free", "experiment", "jobs", "get", "of", "find", "ConflictError", "NotFoundError"} <= found
    real.close()
