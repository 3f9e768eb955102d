"""What must hold when a simulation is over: nothing acknowledged is lost, nothing is doubled, everything ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from services.words.decisions import models_of
from tests.simulator.history import CANCELLED, COMPLETED, ENDED, FAILED, History, name
from tests.simulator.jetstream import FakeServer
from tests.simulator.memory_store import ItemKey
from tests.simulator.model import Models
from touchstone.v1 import item_result_pb2, job_pb2, job_record_pb2

_ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
_NO_MOVE = "judges"
"""The action of an event that tells of further judges."""
_CONDEMNED = "crashed its evaluator"


@dataclass(frozen=True)
class Database:
    """What the results service has stored in the end."""

    items: Mapping[ItemKey, int]
    """By item, its outcome."""
    jobs: Mapping[str, job_pb2.Job]
    events: Mapping[str, job_pb2.JobEvent]
    marks: list[tuple[str, int, str]]
    annotations: list[tuple[ItemKey, str]]


@dataclass(frozen=True)
class World:
    """All that the checks look at. `kills` count crashes by process."""

    history: History
    nats: FakeServer
    database: Database
    models: Models
    kills: Mapping[str, int]
    ended: list[tuple[str, BaseException]]
    owed: list[str]
    """What was promised and has not come, in words."""


def violations(world: World) -> Iterator[str]:
    """Every broken invariant in words."""
    yield from world.history.broken
    yield from sorted({f"process {process} ended with {_words(error)}" for process, error in world.ended})
    if world.history.broken or world.ended:
        # The run was ended then and there: what is left undone says nothing.
        return
    for check in (
        _created,
        _moved,
        _finished,
        _items,
        _audited,
        _deleted,
        _results_agree,
        _calls,
        _kept,
        _exported,
        _tidy,
        _gone,
        _failed,
    ):
        yield from check(world)
    yield from world.owed


def _gone(world: World) -> Iterator[str]:
    """A value that was deleted or replaced is not seen again, also when what replaced it expires."""
    for stream in world.nats.streams.values():
        yield from (f"{subject} has a value again that was replaced" for subject in stream.revived)
        for subject, sequences in stream.by_subject.items():
            newest, *older = (stream.messages[sequence] for sequence in reversed(sequences))
            values = (each for each in older if each.expires is None and "KV-Operation" not in each.headers)
            if stream.name.startswith("KV_") and newest.expires is not None and any(values):
                yield f"{subject} will have a value again that was replaced"


def _created(world: World) -> Iterator[str]:
    for request, jobs in world.history.created.items():
        if len(jobs) > 1:
            yield f"{request} made {len(jobs)} jobs"
        for job_id in jobs:
            if job_id not in world.history.records:
                yield f"job {job_id} was acknowledged for {request} and is not there"
    of_request: Counter[str] = Counter()
    of_decisions: dict[str, int] = {}
    for record in world.history.records.values():
        known = job_record_pb2.JobRecord.FromString(record)
        of_request[known.request_id] += 1
        if known.job.spec.HasField("deciding"):
            of_decisions[known.request_id] = models_of(known.job.spec.deciding)
    for request, jobs_of_it in of_request.items():
        # Those of experiments have none.
        if request and jobs_of_it > of_decisions.get(request, 1):
            yield f"{request} made {jobs_of_it} jobs"


def _moved(world: World) -> Iterator[str]:
    for what, job_id, place in world.history.moved:
        if place not in world.history.places.get(job_id, ()):
            yield f"{what} of job {job_id} was acknowledged as {name(place[0])} ({place[1]}.), and that is not stored"


def _finished(world: World) -> Iterator[str]:
    for job_id, places in world.history.places.items():
        if places[-1][0] not in ENDED:
            yield f"job {job_id} does not end: it stays {name(places[-1][0])}"


def _items(world: World) -> Iterator[str]:
    rows: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for (job_id, *_), outcome in world.database.items.items():
        rows[job_id] += 1
        errors[job_id] += outcome == _ERROR
    for job_id in world.history.records.keys() - world.history.deleted:
        job = world.history.job(job_id)
        planned = sum(task.items * max(1, task.repeats) for task in job.plan)
        if rows[job_id] > planned:
            yield f"job {job_id} has {rows[job_id]} items of {planned} planned"
        if job.state == COMPLETED and not job.incomplete and (rows[job_id], errors[job_id]) != (planned, 0):
            yield (
                f"job {job_id} is complete with {rows[job_id]} items of {planned}, {errors[job_id]} without an answer"
            )
        done = job.progress.items_done
        if job.state in ENDED and job.plan and done != rows[job_id]:
            yield f"job {job_id}, {name(job.state)}, tells {done} items; {rows[job_id]} are stored"


def _audited(world: World) -> Iterator[str]:
    """Every move and every deletion has one event, in the trail and in the database."""
    events = [job_pb2.JobEvent.FromString(message.data) for message in world.nats.streams["AUDIT"].messages.values()]
    trail = Counter(_told(event) for event in events if event.action != _NO_MOVE)
    moves = {
        (job_id, name(state), attempt) for job_id, places in world.history.places.items() for state, attempt in places
    }
    moves |= {(job_id, "deleted", world.history.places[job_id][-1][1]) for job_id in world.history.deleted}
    for job_id, state, attempt in moves ^ trail.keys():
        yield f"the trail and the moves of job {job_id} differ in {state} ({attempt}.)"
    for (job_id, state, attempt), times in trail.items():
        if times > 1:
            yield f"the trail tells {times} times that job {job_id} became {state} ({attempt}.)"
    stored = Counter(_told(event) for event in world.database.events.values() if event.action != _NO_MOVE)
    for job_id, state, attempt in moves ^ stored.keys():
        yield f"the database's trail lacks {state} ({attempt}.) of job {job_id}, or tells it without cause"


def _told(event: job_pb2.JobEvent) -> tuple[str, str, int]:
    """A job, what has become of it, and its attempt."""
    return event.job.job_id, "deleted" if event.job.HasField("deleted_at") else name(event.job.state), event.job.attempt


def _deleted(world: World) -> Iterator[str]:
    """Nothing is left of a deleted job, and nothing else is deleted."""
    for job_id in world.history.deletions:
        if job_id not in world.history.deleted:
            yield f"the acknowledged deletion of job {job_id} is not stored"
    for job_id in world.history.deleted:
        rows = sum(key[0] == job_id for key in world.database.items)
        if rows or job_id in world.database.jobs:
            yield f"job {job_id} was deleted, and the results service has {rows} of its items"


def _results_agree(world: World) -> Iterator[str]:
    for job_id in world.history.records.keys() - world.history.deleted:
        job, stored = world.history.job(job_id), world.database.jobs.get(job_id)
        if stored is None:
            yield f"the results service does not know job {job_id}"
        elif (stored.state, stored.attempt) != (job.state, job.attempt):
            yield f"job {job_id} is {name(job.state)} for the scheduler and {name(stored.state)} for results"


def _calls(world: World) -> Iterator[str]:
    for key, calls in world.models.calls.items():
        most = world.history.allowed[key] + world.models.failures[key]
        if calls > most:
            yield f"item {key} was called {calls} times for {world.history.allowed[key]} deliveries without an answer"


def _kept(world: World) -> Iterator[str]:
    for mark in world.history.marks:
        if mark not in world.database.marks:
            yield f"the acknowledged {mark[2]} of job {mark[0]} is not stored"
    for annotation in world.history.annotations:
        if annotation not in world.database.annotations:
            yield f"the acknowledged annotation {annotation[1]} of job {annotation[0][0]} is not stored"


def _exported(world: World) -> Iterator[str]:
    """An export of a completed job has exactly its items, each once."""
    for job_id, place, found in world.history.exports:
        stored = sorted(key for key in world.database.items if key[0] == job_id)
        same = world.history.places[job_id][-1] == place and job_id not in world.history.deleted
        if same and sorted(found) != stored:
            yield f"an export of job {job_id} has {len(found)} items; {len(stored)} are stored"


def _tidy(world: World) -> Iterator[str]:
    for message in world.nats.streams["WORK"].messages.values():
        yield f"{message.subject} is left on WORK"
    for subject in world.nats.streams["KV_JOBS"].by_subject:
        if subject.startswith("$KV.JOBS.outbox."):
            newest = world.nats.streams["KV_JOBS"].last_matching(subject)
            if newest is not None and "KV-Operation" not in newest.headers:
                yield f"{subject} was never relayed"


def _failed(world: World) -> Iterator[str]:
    crashes = sum(times for process, times in world.kills.items() if process.startswith("e"))
    for job_id in world.history.records:
        job = world.history.job(job_id)
        if job.state == FAILED and _CONDEMNED in job.reason and crashes < 3:
            yield f"job {job_id} was condemned after {crashes} crashes: {job.reason}"
        elif job.state == FAILED and not (
            world.models.failures or crashes or job.spec.reuse.job_id or job.spec.dataset.dataset_id
        ):
            yield f"job {job_id} failed although nothing was wrong with models and evaluators: {job.reason}"
        if job_id == world.history.last_job and job.state != COMPLETED:
            yield f"the job after all faults is {name(job.state)}: {job.reason}"
        replaced = bool(job.spec.judging.job_id) and " runs again. " in job.reason
        stopped = job.spec.HasField("deciding") and job.reason.startswith("Stopped: ")
        if job.state == CANCELLED and not (replaced or stopped or job.reason.startswith("Cancelled by")):
            yield f"job {job_id} is cancelled for: {job.reason}"


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_words(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"
