"""What was seen from outside while a simulation ran: acknowledged changes, stored records, deliveries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from services.bus import KIND_ITEMS, JobHeaders
from services.evaluator.datasets.rows import sample
from services.words.decisions import job_ids
from tests.simulator.model import CallKey
from tests.simulator.processes import SLOTS, catalogue
from tests.simulator.streams import Stored, Stream
from touchstone.v1 import item_result_pb2, job_pb2, job_record_pb2, suite_pb2, unit_pb2

State = job_pb2.Job.State
PENDING, PLANNING, RUNNING, FINALIZING, COMPLETED, FAILED, CANCELLED = (
    job_pb2.Job.STATE_PENDING,
    job_pb2.Job.STATE_PLANNING,
    job_pb2.Job.STATE_RUNNING,
    job_pb2.Job.STATE_FINALIZING,
    job_pb2.Job.STATE_COMPLETED,
    job_pb2.Job.STATE_FAILED,
    job_pb2.Job.STATE_CANCELLED,
)
ENDED = frozenset({COMPLETED, FAILED, CANCELLED})
_HOLDS_SLOT = frozenset({PLANNING, RUNNING})
_NEXT: dict[State, set[State]] = {
    PENDING: {PLANNING, FAILED, CANCELLED},
    PLANNING: {RUNNING, FAILED, CANCELLED},
    RUNNING: {FINALIZING, FAILED, CANCELLED},
    FINALIZING: {COMPLETED, FAILED, CANCELLED},
    COMPLETED: {PENDING},
    FAILED: {PENDING},
    CANCELLED: {PENDING},
}
"""Written out here, and not taken from the scheduler: the checker must not share its mistakes."""

Place = tuple[State, int]
"""A state and the attempt."""


class BrokenInvariantError(Exception):
    """The simulated installation did what it must never do; the message says what."""


def name(state: State) -> str:
    return job_pb2.Job.State.Name(state).removeprefix("STATE_").lower()


@dataclass
class History:
    """Grows while the simulation runs; raises BrokenInvariantError at once where a moment tells."""

    records: dict[str, bytes] = field(default_factory=dict)
    """By job, its newest record."""
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    created: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By request id, the jobs that answers named."""
    deleted: set[str] = field(default_factory=set)
    """Jobs whose record says so."""
    deletions: list[str] = field(default_factory=list)
    """The job of each acknowledged deletion."""
    moved: list[tuple[str, str, Place]] = field(default_factory=list)
    """Operation, job and place of each acknowledged move."""
    marks: list[tuple[str, int, str]] = field(default_factory=list)
    """Job, mark and reason of each acknowledged mark."""
    annotations: list[tuple[tuple[str, str, int, int], str]] = field(default_factory=list)
    """Item and note of each acknowledged annotation."""
    exports: list[tuple[str, Place, list[tuple[str, str, int, int]]]] = field(default_factory=list)
    """Job, its place and the items of each whole export of a completed job."""
    allowed: Counter[CallKey] = field(default_factory=Counter)
    """By call, the deliveries of units that hold its item, while RESULTS has no answer to it."""
    schedules: dict[str, tuple[float, bool | None]] = field(default_factory=dict)
    """By acknowledged schedule, when it was asked for by the clock on the wall, and whether its deletion was
    acknowledged; None while nobody has asked for that."""
    earliest: float = math.inf
    latest: float = 0.0
    """The earliest and the latest time that the clock on the wall has shown, in seconds since 1970."""
    rows: dict[str, int] = field(default_factory=dict)
    """By acknowledged dataset, how many it has."""
    made_rows: Callable[[str], int] = field(default=lambda dataset_id: 0)
    """The same of datasets that the results service makes for experiments and judges."""
    failures_are_injected: bool = False
    """Whether services fail at each other's calls, which users may then be told of."""
    answered: dict[str, set[tuple[str, int, int]]] = field(default_factory=lambda: defaultdict(set))
    """By job, the items whose answers RESULTS has, also those without an outcome of the model."""
    final: dict[str, set[tuple[str, int, int]]] = field(default_factory=lambda: defaultdict(set))
    """The same of those that the model has answered."""
    broken: list[str] = field(default_factory=list)
    last_job: str = ""
    """Created after all faults."""

    def stored(self, stream: Stream, message: Stored) -> None:
        """Called for every message that the server stores."""
        if stream.name == "RESULTS":
            self._answered(message)
        if stream.name != "KV_JOBS" or not message.subject.startswith("$KV.JOBS.job."):
            return
        job_id = message.subject.removeprefix("$KV.JOBS.job.")
        if not message.data:
            return
        headers = JobHeaders.decode(message.headers)
        place = headers.state, headers.attempt
        known = self.places[job_id]
        self.records[job_id] = message.data
        if self.job(job_id).HasField("deleted_at"):
            self.deleted.add(job_id)
        elif job_id in self.deleted:
            self.broken.append(f"job {job_id} was deleted and is stored again")
        self._count(job_id, headers.state)
        if known and known[-1] == place:
            return
        if known and not _is_legal(known[-1], place):
            self.broken.append(f"job {job_id} moved from {_words(known[-1])} to {_words(place)}")
        if not known and place != (PENDING, 1):
            self.broken.append(f"job {job_id} began as {_words(place)}")
        known.append(place)
        # All jobs of a decision share one.
        holding = {self._sharing(job) for job, places in self.places.items() if places[-1][0] in _HOLDS_SLOT}
        if len(holding) > SLOTS:
            self.broken.append(f"{len(holding)} jobs hold {SLOTS} slots")

    def _sharing(self, job_id: str) -> str:
        job = self.job(job_id)
        if job.attempt != 1 or not job.spec.HasField("deciding"):
            return job_id
        return min(each for each in job_ids(job) if each in self.records and self.job(each).attempt == 1)

    def _answered(self, message: Stored) -> None:
        batch = item_result_pb2.ItemResultBatch()
        if message.headers.get("Touchstone-Kind") == KIND_ITEMS:
            batch.MergeFromString(message.data)
        answered = self.answered[batch.job_id]
        for item in batch.items:
            answered.add((batch.task, item.item, item.repeat))
            if item.outcome != item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR:
                self.final[batch.job_id].add((batch.task, item.item, item.repeat))

    def _count(self, job_id: str, state: State) -> None:
        """A job never tells more items than there are answers, whoever has given its units back meanwhile."""
        if state not in (RUNNING, FINALIZING, COMPLETED):
            return
        done = self.job(job_id).progress.items_done
        if done > len(self.answered[job_id]):
            self.broken.append(
                f"job {job_id}, {name(state)}, tells {done} items; {len(self.answered[job_id])} were answered"
            )

    def delivered(self, subject: str, reply: str, data: bytes) -> unit_pb2.Unit | None:
        """Called for every delivery of a consumer; the unit, if it has items."""
        if not reply.startswith("$JS.ACK.WORK."):
            return None
        unit = unit_pb2.Unit.FromString(data)
        if not unit.task or not unit.spec.WhichOneof("work"):
            return None
        indexes = self._rows(unit) if unit.spec.HasField("dataset") else _indexes(unit)
        repeats = max(1, unit.spec.suite.repeats)
        for position in list(unit.positions) or range(unit.start, unit.stop):
            task = f"{unit.task} of {unit.spec.model}"
            index, repeat = indexes[position // repeats], position % repeats
            is_paid = (unit.task, index, repeat) in self.final[unit.job_id]
            self.allowed[unit.spec.sampling.seed, task, index, repeat] += not is_paid
        return unit

    def _rows(self, unit: unit_pb2.Unit) -> Sequence[int]:
        """Of a job over a dataset, the numbers of the rows that it asks."""
        work = unit.spec.dataset
        return sample(unit.task, self.rows_of(work.dataset_id), work.limit, work.seed)

    def rows_of(self, dataset_id: str) -> int:
        """How many a dataset has."""
        return self.rows.get(dataset_id) or self.made_rows(dataset_id)

    def job(self, job_id: str) -> job_pb2.Job:
        """As the scheduler stored it last."""
        return job_record_pb2.JobRecord.FromString(self.records[job_id]).job

    def has_ended(self, job_id: str) -> bool:
        return any(state in ENDED for state, _ in self.places[job_id][-1:])

    def live(self) -> list[str]:
        return [job_id for job_id, places in self.places.items() if places[-1][0] not in ENDED]


def _indexes(unit: unit_pb2.Unit) -> list[int]:
    work = unit.spec.suite
    task = catalogue().task(work.suite, unit.task, suite_pb2.MODE_GENERATE, work.shots)
    return list(catalogue().selection(task, work.limit, work.seed).indexes)


def _is_legal(before: Place, after: Place) -> bool:
    if after[0] not in _NEXT[before[0]]:
        return False
    return after[1] == before[1] + (after[0] == PENDING)


def _words(place: Place) -> str:
    return f"{name(place[0])} (attempt {place[1]})"
