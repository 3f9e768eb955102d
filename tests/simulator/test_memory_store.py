"""The store in memory gives the answers that DuckDB gives, over drawn histories of changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from services.errors import TouchstoneError
from services.results.intake import writes
from services.results.intake.writes import Mark
from services.results.items import reads
from services.results.runs import job_reads
from services.results.scores.job_result import compute
from services.results.storage import stored_responses
from services.results.storage.migrations import open_file
from services.words.jobs import LIVE
from tests.simulator import memory_store
from touchstone.v1 import item_result_pb2, job_pb2
from touchstone.v1 import results_service_pb2 as pb

_JOBS = [f"00000000-0000-7000-8000-{number:012d}" for number in range(3)]
_TASKS = ("a", "b")
_ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
_OUTCOMES = (item_result_pb2.OUTCOME_ANSWERED, item_result_pb2.OUTCOME_UNPARSED, _ERROR)
_STATES = (2, 3, 4, 5, 6, 7)
_DELETING = (14, 34)
Ask = Callable[[Any, Any], Any]


def _job(chance: Random) -> job_pb2.Job:
    job = job_pb2.Job(job_id=chance.choice(_JOBS), owner="alice", attempt=chance.randint(1, 2))
    job.state = chance.choice(_STATES)  # type: ignore[assignment]
    job.spec.suite.suite = "demo"
    for task in _TASKS:
        job.plan.add(task=task, items=4, unit_size=2, scorer_version="1")
        job.progress.tasks.add(task=task, items_total=4)
    return job


def _batch(chance: Random) -> item_result_pb2.ItemResultBatch:
    batch = item_result_pb2.ItemResultBatch(
        job_id=chance.choice(_JOBS), attempt=chance.randint(1, 2), unit=chance.randint(0, 3), task=chance.choice(_TASKS)
    )
    for item in chance.sample(range(4), chance.randint(1, 3)):
        batch.items.add(item=item, position=item, outcome=chance.choice(_OUTCOMES), response=f"r{chance.random()}")
    return batch


def _step(chance: Random, number: int) -> list[tuple[str, Ask]]:
    """One change, then questions; each is asked of the module of functions with a connection."""
    kind = 4 if number in _DELETING else chance.randrange(4)
    job, batch = _job(chance), _batch(chance)
    if kind == 0:
        event = job_pb2.JobEvent(event_id=f"{chance.randint(1, 9):08d}", actor="a", action="moved", job=job)
        event.occurred_at.FromSeconds(number + 1)
        change: Ask = lambda m, c: m.store_events(c, [event])  # noqa: E731
    elif kind == 1:
        change = lambda m, c: m.store_items(c, [batch])  # noqa: E731
    elif kind == 2:
        change = lambda m, c: m.insert_items(c, [batch])  # noqa: E731
    elif kind == 4:
        gone = job_pb2.Job(job_id=job.job_id, owner="alice", attempt=job.attempt, state=job.state)
        gone.deleted_at.FromSeconds(number + 1)
        ends = job_pb2.JobEvent(event_id=f"{number + 10:08d}", actor="a", action="deleted", job=gone)
        ends.occurred_at.FromSeconds(number + 1)
        change = lambda m, c: m.store_events(c, [ends])  # noqa: E731
    else:
        change = lambda m, c: m.write_mark(c, Mark("RESULTS", "then", number))  # noqa: E731
    live = pb.ResultsServiceListJobsRequest(page_size=200, states=LIVE)
    found = pb.FindResponsesRequest(job_id=job.job_id, task="a", positions=range(4))
    return [
        (f"change {kind}", change),
        ("mark", lambda m, c: m.read_mark(c, "RESULTS")),
        ("positions", lambda m, c: m.list_stored_items(c, job.job_id)),
        ("job", lambda m, c: _told(m.get_job(c, job.job_id))),
        ("is stored", lambda m, c: m.is_stored(c, job.job_id)),
        ("sealed", lambda m, c: _sealed(m.sealed_result(c, job.job_id, job.attempt))),
        ("counts", lambda m, c: _counted(m.compute(c, job, seal=False))),
        ("live", lambda m, c: sorted(job.job_id for job in m.list_jobs(c, live).jobs)),
        ("responses", lambda m, c: sorted((r.item, r.response) for r in m.find_responses(c, found).results)),
    ]


def _told(job: job_pb2.Job) -> tuple[Any, ...]:
    tasks = [(task.task, task.items_done, task.items_failed) for task in job.progress.tasks]
    return job.state, job.attempt, job.progress.items_done, job.progress.items_failed, tasks


def _sealed(answer: pb.SealJobResponse | None) -> Any:
    return answer and (answer.missing, answer.infrastructure_errors)


def _counted(computed: Any) -> tuple[int, int]:
    return computed.missing, computed.errors


class _Real:
    """DuckDB's functions under one name."""

    def __getattr__(self, name: str) -> Any:
        for module in (writes, job_reads, job_reads, reads, stored_responses):
            if hasattr(module, name):
                return getattr(module, name)
        return {"compute": compute}[name]


def _answer(ask: Ask, module: Any, connection: Any) -> Any:
    """Of a change: whether it was refused for a key that is there."""
    connection.begin()
    try:
        answer = ask(module, connection)
    except (duckdb.ConstraintException, TouchstoneError) as error:
        connection.rollback()
        return type(error).__name__
    connection.commit()
    return answer


def test_both_stores_give_the_same_answers(tmp_path: Path) -> None:
    chance = Random(1)
    real = open_file(tmp_path / "touchstone.duckdb")
    memory = memory_store.MemoryConnection(memory_store.Stored())
    for number in range(50):
        for what, ask in _step(chance, number):
            assert _answer(ask, memory_store, memory) == _answer(ask, _Real(), real), (number, what)
        if number % 10 == 9:
            job = _job(chance)
            answers = []
            for module, connection in ((memory_store, memory), (_Real(), real)):
                computed = module.compute(connection, job, seal=True)
                seal: Ask = lambda m, c: _sealed(m.store_seal(c, job, computed, datetime.now(UTC)))  # noqa: B023, E731
                answers.append(_answer(seal, module, connection))
            assert answers[0] == answers[1], (number, "seal")
    real.close()
