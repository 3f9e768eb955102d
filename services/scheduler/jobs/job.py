"""A job's life. Pure: one state machine with the legal moves; the caller stores the outcome and acts on it.

PENDING → PLANNING → RUNNING → FINALIZING → COMPLETED; FAILED and CANCELLED from any of the first four; PENDING again
by a retry, from FAILED, CANCELLED, or COMPLETED with items missing. A COMPLETED job whose answers are lost is FAILED.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.protobuf import timestamp_pb2

from services.errors import ConflictError
from services.scheduler.jobs import reuse
from services.scheduler.jobs.ledger import Ledger
from services.words.enums import proto_name
from services.words.jobs import LIVE, can_retry, is_rescore, state_name
from touchstone.v1 import job_pb2, job_record_pb2, scoring_pb2, unit_pb2

if TYPE_CHECKING:
    from services.bus import BatchRecord

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
HOLDS_SLOT = frozenset({PLANNING, RUNNING})

_MOVES = {
    PENDING: {PLANNING, FAILED, CANCELLED},
    PLANNING: {RUNNING, FAILED, CANCELLED},
    RUNNING: {FINALIZING, FAILED, CANCELLED},
    FINALIZING: {COMPLETED, FAILED, CANCELLED},
    COMPLETED: {PENDING, FAILED},
    FAILED: {PENDING},
    CANCELLED: {PENDING},
}


@dataclass(slots=True)
class Job:
    """A job with its progress. `message` is what callers see; `ledger` exists from RUNNING on."""

    message: job_pb2.Job
    told: job_pb2.JobEvent = field(default_factory=job_pb2.JobEvent)
    """The last event, without the job. Empty until the first, and in records of earlier versions."""
    request_id: str = ""
    ledger: Ledger | None = None
    earlier_run_s: float = 0.0
    waiting_since: float = 0.0
    finalizing_sequence: int = 0
    """Last RESULTS position that must be stored before the job is sealed."""
    planning_sequence: int = 0
    """RESULTS position before the answer to the planning unit."""
    planning_since: float = math.inf
    batches: dict[int, BatchRecord] = field(default_factory=dict)
    """By unit, what this attempt has sent through a provider's batch API."""
    absent_s: float = 0.0
    """Seconds of this attempt without a leading scheduler or on a full disk: they count neither as elapsed nor towards
    the time limit."""
    earlier_judges: int = 0
    """How many of its judges, from the first, this attempt had when its record was removed: they do not start again."""
    plan_released: int = 0
    """Attempt whose planning unit this process has released."""
    plans_lost: int = 0
    """How often this process has found the planning unit lost since the job was admitted."""
    plan_answered: int = 0
    """Attempt whose plan this process has."""
    closing: bool = False
    """It is about to end early: no further unit goes out."""

    @property
    def id(self) -> str:
        return self.message.job_id

    @property
    def state(self) -> job_pb2.Job.State:
        return self.message.state

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def awaits_plan(self) -> bool:
        """Whether an evaluator has yet to read its data."""
        return self.state == PLANNING and self.plan_answered != self.message.attempt

    @property
    def deleted(self) -> bool:
        return self.message.HasField("deleted_at")

    @property
    def can_retry(self) -> bool:
        return can_retry(self.message)

    def _move(self, state: job_pb2.Job.State, verb: str) -> None:
        if state not in _MOVES[self.state]:
            raise ConflictError(f"Job {self.id} is {state_name(self.state)} and cannot be {verb}.")
        self.message.state = state

    # -- moves -------------------------------------------------------------------------------------------------

    def admit(self, sequence: int, now: float) -> None:
        """PLANNING begins; the plan will come after RESULTS position `sequence`."""
        self._move(PLANNING, "started")
        self.planning_sequence = sequence
        self.planning_since = now
        self.plans_lost = 0

    def start(self, plan: unit_pb2.Plan, missing: dict[int, tuple[int, ...]] | None, sequence: int, now: float) -> None:
        """The plan is known: RUNNING begins, and the time limit counts. `missing` as in Layout.missing, for a retry.

        `sequence` is the RESULTS position before the attempt's first item. Raises ConflictError when a retry, or a
        job that takes another's answers, would mix two versions of the data or of the model.
        """
        reuse.check_plan(self.message, plan.tasks, plan.receipt)
        self._move(RUNNING, "run")
        del self.message.plan[:]
        self.message.plan.extend(plan.tasks)
        if is_rescore(self.message.spec):
            # The source's receipt, which the job has from the beginning, names the model that answered.
            self.message.receipt.software = plan.receipt.software
        else:
            self.message.receipt.CopyFrom(plan.receipt)
        self.message.item_set = item_set(self.message.spec, plan.tasks)
        self.ledger = Ledger(list(plan.tasks), self.message.spec)
        self.ledger.sequence = sequence
        self.batches.clear()
        self.ledger.carry(self.message.progress)
        if missing is not None:
            self.ledger.keep(missing)
        stamp(self.message.attempt_started_at, now)
        if not self.message.HasField("started_at"):
            stamp(self.message.started_at, now)

    def finalize(self, sequence: int) -> None:
        self._move(FINALIZING, "finalized")
        self.finalizing_sequence = sequence

    def complete(self, *, incomplete: bool, now: float) -> None:
        self._move(COMPLETED, "completed")
        self.message.incomplete = incomplete
        self._finish(now)

    def fail(self, reason: str, now: float, detail: str = "") -> None:
        self._move(FAILED, "failed")
        self.message.reason = reason
        self.message.reason_detail = detail[:4000]
        self._finish(now)

    def cancel(self, actor: str, now: float, reason: str = "") -> None:
        self._move(CANCELLED, "cancelled")
        self.message.reason = reason or f"Cancelled by {actor}."
        self._finish(now)

    def retry(self, now: float) -> None:
        """A new attempt of the same job. Raises ConflictError when nothing is missing."""
        if not self.can_retry:
            why = "has every item" if self.state == COMPLETED else f"is {state_name(self.state)}"
            if self.state == COMPLETED and self.message.incomplete:
                why = "is a completed run of a watch, which counts no failed calls,"
            raise ConflictError(f"Job {self.id} {why} and cannot be retried.")
        self._move(PENDING, "retried")
        self.earlier_run_s = self.message.progress.elapsed_s
        self.message.attempt += 1
        self.message.reason = self.message.reason_detail = ""
        self.message.incomplete = False
        self.earlier_judges = 0
        self.message.ClearField("finished_at")
        self.message.ClearField("attempt_started_at")
        self.absent_s = 0.0
        self.ledger = None
        self.closing = False
        self.waiting_since = now

    def _finish(self, now: float) -> None:
        self.update(now)
        stamp(self.message.finished_at, now)
        progress = self.message.progress
        for name in ("eta_s", "eta_low_s", "eta_high_s"):
            progress.ClearField(name)
        if self.ledger is not None and self.message.spec.budget_usd:
            # For units that could not be closed: answers to calls under way come too late to be counted.
            progress.lost_usd = progress.reserved_usd
            progress.lost_calls += self.ledger.open_calls
        progress.units_released = progress.queue_position = 0
        for task in progress.tasks:
            task.running = False
        # The whole run's mean, as there is no longer a present rate.
        attempt_s = progress.elapsed_s - self.earlier_run_s
        ran = progress.items_done - (self.ledger.kept_items if self.ledger else 0)
        progress.items_per_second = ran / attempt_s if attempt_s > 0 else 0.0
        progress.tokens_per_second = progress.output_tokens / attempt_s if attempt_s > 0 else 0.0
        progress.current_step = state_name(self.state).capitalize()

    def rewind(self, end: int) -> None:
        """RESULTS now ends at this position. If that is before what was read from it, it has lost messages, and new
        ones reuse the numbers of old ones."""
        self.planning_sequence = min(self.planning_sequence, end)
        self.finalizing_sequence = min(self.finalizing_sequence, end)
        if self.ledger is not None:
            self.ledger.rewind(end)

    def delete(self, now: float) -> None:
        """Raises ConflictError for a job that is not finished."""
        if self.live:
            raise ConflictError(f"Job {self.id} is {state_name(self.state)}. Cancel it first, then delete it.")
        stamp(self.message.deleted_at, now)

    # -- figures -----------------------------------------------------------------------------------------------

    def update(self, now: float) -> None:
        """Brings `message.progress` up to date; a finished job's figures stay."""
        if self.message.HasField("finished_at"):
            return
        progress = self.message.progress
        if self.message.HasField("attempt_started_at"):
            progress.elapsed_s = self.earlier_run_s + self._attempt_s(now)
        if self.ledger is not None:
            self.ledger.progress(now, progress)

    def over_time(self, now: float) -> bool:
        limit = self.message.progress.time_limit_s
        if self.state != RUNNING or not limit:
            return False
        return self._attempt_s(now) > limit

    def _attempt_s(self, now: float) -> float:
        return max(0.0, now - seconds(self.message.attempt_started_at) - self.absent_s)

    def pause(self, span_s: float) -> None:
        """The last `seconds` seconds count neither as elapsed nor towards a limit."""
        self.planning_since += span_s
        if self.message.HasField("attempt_started_at"):
            self.absent_s += span_s

    def resume(self, now: float) -> None:
        """Another leadership begins: what has passed since the last checkpoint counts as absence."""
        if self.live and self.message.HasField("attempt_started_at"):
            known = self.message.progress.elapsed_s - self.earlier_run_s
            self.absent_s = max(0.0, now - seconds(self.message.attempt_started_at) - known)

    # -- storage -----------------------------------------------------------------------------------------------

    def event(self) -> job_pb2.JobEvent:
        """The last event, with the job as it is now."""
        event = job_pb2.JobEvent(job=self.message)
        event.MergeFrom(self.told)
        return event

    def record(self) -> job_record_pb2.JobRecord:
        record = job_record_pb2.JobRecord(
            job=self.message,
            request_id=self.request_id,
            earlier_run_s=self.earlier_run_s,
            results_sequence=self.planning_sequence,
            told=self.told,
            earlier_judges=self.earlier_judges,
        )
        if self.ledger is not None:
            self.ledger.save(record)
        return record

    @classmethod
    def load(cls, record: job_record_pb2.JobRecord) -> Job:
        """Raises ValueError for a state that this version does not know."""
        if record.job.state not in _MOVES:
            raise ValueError(f"State {record.job.state} of a job is unknown.")
        job = cls(record.job, record.told, record.request_id, earlier_run_s=record.earlier_run_s)
        job.waiting_since = seconds(record.job.created_at)
        job.planning_sequence = record.results_sequence
        job.earlier_judges = record.earlier_judges
        if job.state in (RUNNING, FINALIZING):
            job.ledger = Ledger.load(record)
            job.finalizing_sequence = record.results_sequence
        return job


def item_set(spec: job_pb2.JobSpec, plan: Iterable[job_pb2.TaskPlan]) -> str:
    """Hash over the tasks' item-set hashes: two runs with the same hash ran exactly the same items with the same
    scoring. A suite's readings count if they are not lenient; a dataset's hash includes its scoring."""
    parts: list[str] = []
    for task in plan:
        parts.append(task.item_set)
        if spec.HasField("suite") and task.reading in (scoring_pb2.READING_STRICT, scoring_pb2.READING_MARKED):
            parts.append(proto_name(scoring_pb2.Reading, task.reading))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def seconds(stamp: timestamp_pb2.Timestamp) -> float:
    return stamp.seconds + stamp.nanos / 1e9


def stamp(target: timestamp_pb2.Timestamp, now: float) -> None:
    target.FromNanoseconds(int(now * 1e9))


_VERSION, _VARIANT = 7, 0b10


def new_job_id(now: float) -> str:
    """A UUID of version 7 (RFC 9562): `now`, in seconds since 1970, then 74 random bits.

    Ids grow with time, so the rows of a job are in the order of the table: among millions of results they are found
    without an index, which random ids would not allow.
    """
    milliseconds = int(now * 1000) & ((1 << 48) - 1)
    high, low = secrets.randbits(12), secrets.randbits(62)
    return str(uuid.UUID(int=milliseconds << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low))
